"""A job that counts, for tests that run it without Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from holdfast.common import Types, WatermarkStrategy
from holdfast.common.job_client import JobClient
from holdfast.connectors.file_sink.formats import JsonSinkFormat
from holdfast.datastream.connectors.file_system import FileSink
from tests.integration.programs import PAIR, Scripted, environment


def settings(directory: Path, **changes: str) -> dict[str, str]:
    """A job with a checkpoint in every epoch, under a fixed id, that may restart."""
    return {
        "holdfast.job-id": "job",
        "holdfast.state.local-dir": str(directory / "local"),
        "holdfast.epoch.idle-wait": "1 ms",
        "execution.checkpointing.interval": "10 ms",
        # Snapshots are stored within their epoch, so that what an epoch has completed does not depend on time.
        "holdfast.checkpoint.upload-wait": "60 s",
        "execution.checkpointing.dir": str(directory / "chk"),
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "3",
        "restart-strategy.fixed-delay.delay": "1 ms",
        **changes,
    }


class WatchedSink(FileSink):
    """Publishes one transaction after the other, and calls ``before`` ahead of each, with its place in the call and
    whether it is one of a restored checkpoint."""

    before: ClassVar[Callable[[int, bool], None]] = staticmethod(lambda place, recovering: None)

    def __init__(self, path: Path) -> None:
        super().__init__(str(path), JsonSinkFormat())

    def commit(self, handles: Sequence[bytes]) -> None:
        for place, handle in enumerate(handles):
            type(self).before(place, False)
            super().commit([handle])

    def recover_and_commit(self, handles: Sequence[bytes]) -> None:
        for place, handle in enumerate(handles):
            type(self).before(place, True)
            super().recover_and_commit([handle])


#: The level of ``counting`` whose tasks count, and write to its sinks.
SINK_LEVEL = 1


def counting(
    given: Mapping[str, str], epochs: list[list[Any]], *sinks: FileSink, ends: bool = True, parallelism: int = 2
) -> JobClient:
    """Start a job that counts the rows of each key, an epoch for every list of rows."""
    env = environment(**given).set_parallelism(parallelism)
    source = env.from_source(Scripted(epochs, ends), WatermarkStrategy.no_watermarks(), "script").uid("source")
    keyed = source.key_by(lambda row: row[0], Types.LONG())
    counts = keyed.map_with_state(count, state_type=int, output_type=PAIR).uid("count")
    for number, sink in enumerate(sinks):
        counts.sink_to(sink).uid(f"sink-{number}")
    return env.execute_async("counting")


def count(row: tuple[int, int], seen: int | None) -> tuple[tuple[int, int], int]:
    return (row[0], (seen or 0) + 1), (seen or 0) + 1


def counts_of(epochs: list[list[tuple[int, int]]]) -> list[tuple[int, int]]:
    """What ``counting`` must publish, sorted."""
    seen: dict[int, int] = {}
    out = []
    for row in (row for rows in epochs for row in rows):
        seen[row[0]] = seen.get(row[0], 0) + 1
        out.append((row[0], seen[row[0]]))
    return sorted(out)


#: Rows of three keys for six epochs.
EPOCHS = [[(row % 3, row) for row in range(first, first + 5)] for first in range(0, 30, 5)]


def staged(path: Path) -> list[Path]:
    """Files of open transactions of a file sink."""
    return [file for file in path.glob("_holdfast_staging/**/*") if file.is_file()]
