"""What a benchmark job is given on its command line and what it leaves behind for the harness.

Standard library only: jobs of peers run in environments of their own.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

#: Subtasks, workers or shuffle partitions of every job.
PARALLELISM = 2

#: The same for every job, Holdfast's included. Adaptive execution is off because it merges small shuffle partitions.
SPARK_SETTINGS = {
    "spark.master": "local[2]",
    "spark.driver.memory": "2g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": str(PARALLELISM),
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    # As in sessions that Holdfast starts; whoever else runs Python on Spark has it too.
    "spark.python.unix.domain.socket.enabled": "true",
}


@dataclass(frozen=True)
class Epoch:
    """One epoch or micro-batch, with seconds since 1970."""

    epoch: int
    rows: int
    started: float
    finished: float


@dataclass(frozen=True)
class Checkpoint:
    """One checkpoint, or what an engine has in its place: milliseconds, and bytes where it tells."""

    millis: float
    bytes: int | None = None


@dataclass(frozen=True)
class JobArguments:
    """Where the rows are, where files may be written, what to run, and where the outcome goes.

    ``expected_rows`` is how many rows there are to read; ``gap_ms`` is the gap of sessions. With ``live`` files come
    while the job runs, and it ends when it has read all of them.
    """

    job: str
    variant: str
    data: Path
    scratch: Path
    result: Path
    epoch_rows: int
    expected_rows: int
    gap_ms: int
    live: bool = False

    @classmethod
    def parse(cls) -> JobArguments:
        parser = argparse.ArgumentParser()
        parser.add_argument("given", type=json.loads)
        given = parser.parse_args().given
        for name in ("data", "scratch", "result"):
            given[name] = Path(given[name])
        return cls(**given)

    def command(self) -> list[str]:
        """The command line that parses to these arguments."""
        return [json.dumps({one.name: getattr(self, one.name) for one in fields(self)}, default=str)]


@dataclass(frozen=True)
class Outcome:
    """The epochs of one run, how many rows it emitted and the sum of their checked columns, and its checkpoints."""

    epochs: Sequence[Epoch]
    emitted: int
    checksum: int
    checkpoints: Sequence[Checkpoint] = field(default_factory=tuple)

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, path: Path) -> Outcome:
        content = json.loads(path.read_text())
        content["epochs"] = [Epoch(**entry) for entry in content["epochs"]]
        content["checkpoints"] = [Checkpoint(**entry) for entry in content["checkpoints"]]
        return cls(**content)


class Marks:
    """Times taken inside a job that has no epochs: of every so many rows that one worker has processed."""

    def __init__(self, directory: Path, worker: int | str, every: int) -> None:
        self._path = directory / f"marks-{worker}.json"
        self._every = max(1, every)
        self._times: list[tuple[float, int]] = []
        # Workers that are threads share it, and a step of it is never lost.
        self._rows = itertools.count()
        self._last = time.time()

    def row(self) -> None:
        """A row is being processed."""
        rows, self._last = next(self._rows), time.time()
        if rows % self._every == 0:
            self._times.append((self._last, rows))

    def write(self) -> None:
        """All rows of this worker are processed. The last one counts: engines may take their time to end."""
        self._path.write_text(json.dumps([*sorted(self._times), (self._last, next(self._rows))]))


class Tally:
    """Counts and sums up what one worker emits."""

    def __init__(self, directory: Path, worker: int | str) -> None:
        self._path = directory / f"tally-{worker}.json"
        self.rows = 0
        self.checksum = 0

    def write(self) -> None:
        self._path.write_text(json.dumps([self.rows, self.checksum]))


def outcome_of_marks(directory: Path, epoch_rows: int) -> Outcome:
    """What the marks and tallies of all workers say, with every ``epoch_rows`` rows as an epoch."""
    steps: list[tuple[float, int]] = []
    for path in directory.glob("marks-*.json"):
        marks: list[tuple[float, int]] = json.loads(path.read_text())
        before = 0
        for at, rows in marks:
            steps.append((at, rows - before))
            before = rows
    steps.sort()
    tallies: list[Any] = [json.loads(path.read_text()) for path in directory.glob("tally-*.json")]
    return Outcome(_cut(steps, epoch_rows), sum(rows for rows, _ in tallies), sum(check for _, check in tallies))


def _cut(steps: Sequence[tuple[float, int]], epoch_rows: int) -> list[Epoch]:
    epochs: list[Epoch] = []
    if not steps:
        return epochs
    started, pending = steps[0][0], 0
    for number, (at, rows) in enumerate(steps):
        pending += rows
        if pending and (pending >= epoch_rows or number == len(steps) - 1):
            epochs.append(Epoch(len(epochs), pending, started, at))
            started, pending = at, 0
    return epochs
