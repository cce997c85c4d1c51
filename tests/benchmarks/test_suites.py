"""Suites without Spark run, and the page takes what they find."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks import page, suite
from benchmarks.catalogue import Size
from benchmarks.tables import Table

PAGE = f"# Performance\n\nBefore.\n\n{page.BEGIN}\nstale\n{page.END}\n\nAfter.\n"


@pytest.mark.parametrize(
    ("name", "firsts"),
    [
        ("growth", ["lmdb", "lmdb", "rocksdb", "rocksdb"]),
        ("checkpoints", ["lmdb"] * 4 + ["rocksdb"] * 4 + ["rocksdb, CHANGED_KEYS"] * 4),
    ],
)
def test_a_suite_gives_its_table(name: str, firsts: list[str]) -> None:
    (table,) = suite.run(name, Size.TINY)
    assert table.name == name and [row[0] for row in table.rows] == firsts, table.text()
    if name == "checkpoints":
        # By changed keys, a tenth of the changes is a tenth of the bytes.
        tenth, everything = (row for row in table.rows if row[0] == "lmdb" and row[1] in (200, 2_000))
        assert 0.05 < float(tenth[4] or 0) / float(everything[4] or 1) < 0.2


def test_restores_are_measured_beside_a_copy_and_by_subtasks() -> None:
    own, subtasks = suite.run("restore", Size.TINY)
    assert [row[0] for row in own.rows] == ["lmdb", "rocksdb"]
    changes = {str(row[0]): round(float(row[4] or 0), 2) for row in subtasks.rows}
    assert changes["lmdb, 2 -> 2"] == changes["rocksdb, 2 -> 2"] == 1
    assert changes["lmdb, 2 -> 3, 128 -> 256 groups"] == 3 and len(changes) == 6


def test_a_suite_that_fails_is_a_table_with_its_error() -> None:
    (table,) = suite.run("no_such_suite", Size.TINY)
    assert table.title.endswith(": failed") and "no_such_suite" in str(table.rows)


def results() -> dict[str, Any]:
    figure = {"job": "average", "contestant": "holdfast-lmdb", "title": "Holdfast", "rows_per_second": 300_000.0}
    growth = Table("growth", "growth", ["", "keys", "us per row"], [["lmdb", 1_000, 4.0], ["lmdb", 10_000, 4.5]])
    machine = dict.fromkeys(("cpu", "cores", "memory", "load", "load at the end", "system", "python", "java"), "x")
    return {
        "machine": {**machine, "commit": "abc", "size": "quick", "started": "today", "packages": {"pyspark": "4"}},
        "figures": [{**figure, "least": 250_000.0, "most": 310_000.0}],
        "tables": [
            Table("average", "average: of three", ["", "rows/s"], [["Holdfast", 300_000.0]]).content(),
            growth.content(),
        ],
    }


def test_the_page_keeps_its_text_and_takes_tables_and_plots(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="part of the extra bench")
    (tmp_path / "performance.md").write_text(PAGE)
    for _ in range(2):
        page.write(tmp_path, results())
    text = (tmp_path / "performance.md").read_text()
    assert text.startswith("# Performance\n\nBefore.") and text.endswith("After.\n") and "stale" not in text
    assert "| Holdfast | 300,000 |" in text and "pyspark 4" in text
    for name in ("average", "growth"):
        assert f"](performance/{name}.png)" in text
        assert (tmp_path / "performance" / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_a_page_without_a_place_for_them_is_refused(tmp_path: Path) -> None:
    (tmp_path / "performance.md").write_text("# Performance\n")
    with pytest.raises(ValueError, match="measured: begin"):
        page.write(tmp_path, results())
