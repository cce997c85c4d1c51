from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import EpochError
from holdfast.spark.internals.file_source_log import cut_log, log_number


def line(number: int) -> str:
    return json.dumps({"path": f"file:///in/{number}.json", "timestamp": 1, "batchId": number})


def spark_log(entries: int, interval: int, deleted_below: int = 0) -> dict[str, bytes]:
    """The files that Spark leaves: every ``interval``-th entry is compact, and old files are deleted."""
    files = {}
    for number in range(entries):
        compact = (number + 1) % interval == 0
        lines = [line(one) for one in (range(number + 1) if compact else [number])]
        files[f"{number}.compact" if compact else str(number)] = "\n".join(["v1", *lines]).encode()
    return {name: data for name, data in files.items() if (log_number(name) or 0) >= deleted_below}


def entries_of(files: dict[str, bytes]) -> list[int]:
    return [json.loads(one)["batchId"] for data in files.values() for one in data.decode().split("\n")[1:]]


@given(st.data(), st.integers(1, 60), st.integers(2, 12))
def test_a_cut_log_has_every_entry_up_to_its_last_once(data: st.DataObject, entries: int, interval: int) -> None:
    last = data.draw(st.integers(0, entries - 1))
    newest_compact = max((n for n in range(entries) if (n + 1) % interval == 0), default=0)
    files = spark_log(entries, interval, deleted_below=data.draw(st.integers(0, newest_compact)))
    cut = cut_log(files, last)
    assert sorted(entries_of(cut)) == list(range(last + 1))
    assert max(log_number(name) or 0 for name in cut) == last


def interval_of(compact: list[int], configured: int) -> int:
    """Spark's rule for which entries are compact, from the compact files that it finds."""
    if len(compact) >= 2:
        return compact[-1] - compact[-2]
    entries = compact[-1] + 1
    if entries <= configured or configured >= entries // 2:
        return entries
    return next(divisor for divisor in range(configured, entries + 1) if entries % divisor == 0)


@given(st.integers(0, 200), st.integers(1, 30))
def test_spark_finds_compact_files_where_it_looks_for_them(last: int, configured: int) -> None:
    names = cut_log(spark_log(last + 1, 10), last)
    compact = sorted(log_number(name) or 0 for name in names if name.endswith(".compact"))
    interval = interval_of(compact, configured)
    newest = max(n for n in range(last + 1) if (n + 1) % interval == 0)
    assert f"{newest}.compact" in names
    assert {str(n) for n in range(newest + 1, last + 1)} <= names.keys()
    assert interval < 20


def test_a_log_that_somebody_deleted_from_is_refused() -> None:
    files = spark_log(8, 10)
    del files["3"]
    with pytest.raises(EpochError, match="cannot be cut behind 5: something else deletes files"):
        cut_log(files, 5)


def test_a_log_of_another_version_is_refused() -> None:
    with pytest.raises(EpochError, match="version b'v2'"):
        cut_log({"0": b"v2\n{}"}, 0)


def test_files_that_are_no_entries_have_no_number() -> None:
    assert [log_number(name) for name in ("7", "9.compact", "seven", "7.tmp")] == [7, 9, None, None]
