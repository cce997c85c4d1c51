"""Two versions of a program that counts rows by key: the second keeps its counts as texts, under other keys."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from holdfast.common import Types, WatermarkStrategy
from holdfast.datastream import FlatMapFunction, RuntimeContext, StreamExecutionEnvironment
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.datastream.state import ValueStateDescriptor
from tests.integration.programs import PAIR, Scripted


class Counts(FlatMapFunction):
    """(key as a number, place of the row among those of its key)."""

    def __init__(self, migrate: Callable[[Any], str] | None) -> None:
        self.migrate = migrate

    def open(self, runtime_context: RuntimeContext) -> None:
        if self.migrate is None:
            descriptor = ValueStateDescriptor("seen", Types.LONG())
        else:
            descriptor = ValueStateDescriptor("count", Types.STRING()).renamed_from("seen")
            descriptor.migrate_from(0, self.migrate)
        self.count = runtime_context.get_state(descriptor)

    def flat_map(self, value: tuple[int, int]) -> Iterable[tuple[int, int]]:
        before = self.count.value()
        count = (int(str(before).removeprefix("n")) if before is not None else 0) + 1
        self.count.update(count if self.migrate is None else f"n{count}")
        yield value[0], count


def as_text(count: int) -> str:
    return f"n{count}"


class KillsOnce:
    """``as_text``; but the first task that has migrated ten values is killed in the middle of it."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker
        self.calls = 0

    def __call__(self, count: int) -> str:
        self.calls += 1
        if self.calls == 10 and not self.marker.exists():
            self.marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return as_text(count)


def build(
    env: StreamExecutionEnvironment,
    directory: Path,
    epochs: list[list[tuple[int, int]]],
    migrate: Callable[[Any], str] | None = None,
    parallelism: int = 2,
    ends: bool = False,
) -> None:
    """The first version; with ``migrate`` the second one."""
    rows = env.from_source(Scripted(epochs, ends), WatermarkStrategy.no_watermarks(), "rows", PAIR).uid("rows")
    if migrate is None:
        keyed = rows.key_by(lambda row: row[0], Types.LONG())
    else:
        keyed = rows.key_by(lambda row: f"key {row[0]}", Types.STRING()).migrate_key_from(0, lambda key: f"key {key}")
    counts = keyed.flat_map(Counts(migrate), PAIR).uid("counts").set_parallelism(parallelism)
    counts.sink_to(FileSink.json(str(directory / "out"))).uid("out").set_parallelism(parallelism)
