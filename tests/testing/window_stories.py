"""Rows in batches through windows, with what happens between them, told to two ways of doing it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from holdfast.common import Row
from holdfast.datastream import OutputTag
from holdfast.runtime.batch import Batch
from holdfast.runtime.envelope import ChannelStatus, Envelope, unpack_header
from holdfast.state import keyed_backend
from holdfast.state.lmdb.backend import LmdbBackend
from holdfast.testing import KeyedOperatorHarness
from holdfast.testing.outputs import Output

LARGE_CACHE = 500_000


@dataclass(frozen=True)
class Step:
    """Rows of one batch, each with its time and the watermark with which it comes, and what happens then."""

    rows: list[tuple[Row, int, int]]
    then: str


def send(harness: Any, rows: list[tuple[Row, int, int]], waiting: bool = False) -> None:
    """Rows in one batch, each with a watermark of its own. ``waiting``: they may wait for those of the next batch."""
    epochs = harness._epochs
    epochs.run()
    (target,) = epochs.inputs
    mine = [row for row in rows if harness.owns(row[0])]
    if mine:
        values, times, watermarks = (list(column) for column in zip(*mine, strict=True))
        target._router.collect(Batch(values, times, watermarks))
        target._router.flush()
        epochs._deliver()
    if waiting and mine:
        target.send_status(ChannelStatus(mine[-1][2], False, False))
        epochs._deliver()
    elif not waiting:
        harness.advance_watermark(rows[-1][2])


def capture(output: Output, envelope: Envelope) -> None:
    """As a harness does, with the watermarks of rows beside their times."""
    header, body = unpack_header(envelope.payload)
    if envelope.edge == output.edge_id and header.rows:
        batch = output._reader.read(header, body)
        assert batch.timestamps is not None and batch.watermarks is not None
        times: Any = zip(batch.timestamps, batch.watermarks, strict=True)
        output.rows += zip(batch.values, times, strict=True)


def limits_of(entries: int) -> dict[str, Any]:
    """The limits of a path of rows: where few entries are held, few rows wait for each other, in and out."""
    return {} if entries == LARGE_CACHE else {"most_waiting_rows": 2 * entries, "most_given": entries}


@contextmanager
def caches_of(entries: int) -> Iterator[pytest.MonkeyPatch]:
    """So many entries are held until they are written early; what comes out has its watermarks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Output, "capture", capture)
        patch.setattr(keyed_backend, "_EPOCH_CACHE", entries)
        if entries < LARGE_CACHE:
            patch.setattr(LmdbBackend, "cache_limit", entries)
        yield patch


class Story:
    """The subtasks of one run, and all that came out of them: by subtask, in order."""

    def __init__(self, late: OutputTag, **options: Any) -> None:
        self.harnesses = KeyedOperatorHarness.parallel(1, side_outputs=[late], max_parallelism=16, **options)
        self._tag = late
        self.out: list[Any] = []
        self.late: list[Any] = []

    def run(self, steps: list[Step]) -> tuple[list[Any], list[Any]]:
        for step in steps:
            for harness in self.harnesses:
                send(harness, step.rows, waiting=step.then == "wait")
            getattr(self, step.then)(step.rows[-1][2])
        self.harnesses.end_input()
        timers = [harness.num_event_time_timers() for harness in self.harnesses]
        self._take()
        self.harnesses.close()
        assert timers == [0] * len(timers)
        return self.out, self.late

    def go_on(self, watermark: int) -> None: ...

    def wait(self, watermark: int) -> None: ...

    def epoch(self, watermark: int) -> None:
        self.harnesses.end_epoch()

    def another_worker(self, watermark: int) -> None:
        for harness in self.harnesses:
            harness.end_epoch().forget_live_objects()

    def rescale(self, watermark: int) -> None:
        snapshot = self.harnesses.snapshot()
        parallelism = 3 - len(self.harnesses)
        self._take()
        self.harnesses = self.harnesses.rescaled(parallelism, snapshot)
        self.harnesses.advance_watermark(watermark)

    def _take(self) -> None:
        for harness in self.harnesses:
            self.out += [(tuple(row), time) for row, time in harness.timestamped_output()]
            self.late += [tuple(row) for row in harness.side_output(self._tag)]
