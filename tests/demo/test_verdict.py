"""The direct computation of the demo must be able to say no."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from holdfast.demo.verdict import judge


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
    assert (verdict.lost, verdict.rows_out, verdict.rows_in) == (2, 0, 25)
