"""What the demo shows."""

from __future__ import annotations

import io

from rich.console import Console

from holdfast.demo.displays import PlainDisplay, _render, display_for
from holdfast.demo.progress import CheckpointLine, EpochLine, Note, Progress, counted_epochs
from holdfast.job.job import EpochRecord

PROGRESS = Progress(
    status="RUNNING",
    seconds=3.0,
    attempt=2,
    restarts=1,
    rows=3_000,
    rows_per_second=1_500.0,
    events_written=4_000,
    epochs=[EpochLine(1, 1, 1_000, 500.0, None), EpochLine(2, 1, 2_000, 700.0, 1)],
    checkpoints=[
        CheckpointLine(1, "completed", "full", 2_048, 250),
        CheckpointLine(2, "in progress", "changes", 0, None),
    ],
    notes=[Note(1.0, "SIGKILL to Python worker 77")],
)


def record(attempt, epoch, rows):
    return EpochRecord(attempt, epoch, rows, 0.0, 1.0)


def test_epochs_that_an_attempt_undid_are_not_counted():
    epochs = [record(1, 1, 10), record(1, 2, 20), record(1, 3, 30), record(2, 2, 25), record(2, 3, 5)]
    assert [(e.attempt, e.epoch, e.rows) for e in counted_epochs(epochs)] == [(1, 1, 10), (2, 2, 25), (2, 3, 5)]


def test_plain_lines_come_once_each():
    stream = io.StringIO()
    display = PlainDisplay(stream)
    display.show(PROGRESS)
    first = stream.getvalue()
    assert "epoch 2 (attempt 1): 2,000 rows, 700 rows/s" in first
    assert "checkpoint 1: completed, full, 2 kB in 250 ms" in first
    assert "SIGKILL to Python worker 77" in first
    assert "checkpoint 2" not in first
    display.show(PROGRESS)
    assert stream.getvalue() == first


def test_the_tables_have_epochs_checkpoints_restarts_and_notes():
    console = Console(file=io.StringIO(), width=140)
    console.print(_render(PROGRESS))
    text = console.file.getvalue()
    for shown in ("RUNNING", "restarts 1", "3,000 of 4,000 events", "1,500/s", "700", "completed", "2 kB", "250 ms"):
        assert shown in text
    assert "SIGKILL to Python worker 77" in text


def test_anything_but_a_terminal_gets_lines():
    assert isinstance(display_for(io.StringIO(), plain=False), PlainDisplay)
