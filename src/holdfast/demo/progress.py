"""What the demo shows of a running job: taken from its client, as plain values."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from holdfast.common import JobClient
from holdfast.job.job import EpochRecord


@dataclass(frozen=True)
class EpochLine:
    number: int
    attempt: int
    rows: int
    rows_per_second: float
    checkpoint: int | None


@dataclass(frozen=True)
class CheckpointLine:
    number: int
    status: str
    kind: str
    written_bytes: int
    duration_ms: int | None


@dataclass(frozen=True)
class Note:
    """Something that happened once."""

    seconds: float
    text: str


@dataclass(frozen=True)
class Progress:
    """One look at the job."""

    status: str
    seconds: float
    attempt: int = 0
    restarts: int = 0
    rows: int = 0
    rows_per_second: float = 0.0
    events_written: int = 0
    epochs: Sequence[EpochLine] = ()
    checkpoints: Sequence[CheckpointLine] = ()
    notes: Sequence[Note] = ()


@dataclass
class Notebook:
    """Notes of several threads, in order, with the time since the demo began."""

    started: float = field(default_factory=time.monotonic)
    _notes: list[Note] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, text: str) -> None:
        with self._lock:
            self._notes.append(Note(self.elapsed(), text))

    def elapsed(self) -> float:
        return time.monotonic() - self.started

    def all(self) -> list[Note]:
        with self._lock:
            return list(self._notes)


def counted_epochs(epochs: Iterable[EpochRecord]) -> list[EpochRecord]:
    """The epochs whose results stand: an attempt that goes back to an epoch replaces all that came after it."""
    standing: list[EpochRecord] = []
    for record in epochs:
        while standing and standing[-1].epoch >= record.epoch:
            standing.pop()
        standing.append(record)
    return standing


def observe(client: JobClient, notebook: Notebook, events_written: int) -> Progress:
    """Look at the job now."""
    history = client.get_history()
    epochs = list(history.epochs)
    standing = counted_epochs(epochs)
    return Progress(
        status=client.get_job_status().result().name,
        seconds=notebook.elapsed(),
        attempt=history.attempt,
        restarts=history.restarts,
        rows=sum(record.rows for record in standing),
        rows_per_second=_rate(epochs[-5:]),
        events_written=events_written,
        epochs=[
            EpochLine(record.epoch, record.attempt, record.rows, _rate([record]), record.checkpoint_id)
            for record in epochs
        ],
        checkpoints=_checkpoints(client),
        notes=notebook.all(),
    )


def _rate(records: Sequence[EpochRecord]) -> float:
    seconds = sum(record.finished - record.started for record in records)
    return sum(record.rows for record in records) / seconds if seconds else 0.0


def _checkpoints(client: JobClient) -> list[CheckpointLine]:
    entries = client.get_checkpoint_statistics().history.copy()
    return [
        CheckpointLine(
            entry.checkpoint_id,
            entry.status.value.lower().replace("_", " "),
            "full" if entry.full else "changes",
            entry.bytes_written,
            entry.duration,
        )
        for entry in entries
    ]
