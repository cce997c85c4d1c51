"""The direct computation of the demo must be able to say no."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from holdfast.demo.verdict import compare, judge

EXPECTED = [(1, 10, 2.0), (1, 20, 3.0), (2, 10, 2.0)]


def test_the_same_rows_in_any_order_are_exactly_once():
    verdict = compare(EXPECTED, list(reversed(EXPECTED)), events=30)
    assert verdict.exactly_once
    assert (verdict.expected, verdict.seen, verdict.events) == (3, 3, 30)


@pytest.mark.parametrize(
    ("seen", "counts"),
    [
        (EXPECTED[:2], (1, 0, 0)),
        ([*EXPECTED, EXPECTED[0]], (0, 1, 0)),
        ([*EXPECTED, (1, 20, 3.5)], (0, 0, 1)),
        ([(1, 10, 2.0), (1, 20, 3.5), (2, 10, 2.0)], (1, 0, 1)),
        ([], (3, 0, 0)),
    ],
    ids=["lost", "repeated", "wrong", "changed", "nothing"],
)
def test_every_deviation_is_told_apart(seen, counts):
    verdict = compare(EXPECTED, seen)
    assert (verdict.lost, verdict.repeated, verdict.wrong) == counts
    assert not verdict.exactly_once


def test_no_expected_rows_prove_nothing():
    assert not compare([], []).exactly_once


@pytest.fixture
def directories(tmp_path):
    """Sensor 7 has 20 readings over two files, sensor 8 has 5: two results, and none of sensor 8."""
    source, target = tmp_path / "input", tmp_path / "output"
    source.mkdir()
    target.mkdir()
    readings = [(7, number) for number in range(20)] + [(8, 1)] * 5
    for index, part in enumerate((readings[:12], readings[12:])):
        sensor, reading = zip(*part, strict=True)
        pq.write_table(pa.table({"sensor": sensor, "reading": reading}), source / f"events-{index}.parquet")
    return source, target


def write_results(target, name, rows):
    sensor, count, average = zip(*rows, strict=True)
    pq.write_table(pa.table({"sensor": sensor, "count": count, "average": average}), target / name)


def test_files_are_judged(directories):
    source, target = directories
    write_results(target, "part-a.parquet", [(7, 10, 4.5)])
    write_results(target, "part-b.parquet", [(7, 20, 9.5)])
    assert judge(source, target).exactly_once


def test_files_that_readers_must_not_see_are_not_counted(directories):
    source, target = directories
    write_results(target, "part-a.parquet", [(7, 10, 4.5), (7, 20, 9.5)])
    write_results(target, "_part-open.parquet", [(7, 10, 4.5)])
    assert judge(source, target).exactly_once


def test_an_empty_output_has_lost_everything(directories):
    verdict = judge(*directories)
    assert (verdict.lost, verdict.seen, verdict.events) == (2, 0, 25)
