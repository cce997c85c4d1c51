"""Whole jobs whose backend, sink, window assigner and aggregate are another project's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast.checkpoint.storage import open_snapshot
from holdfast.common import Configuration, Types, WatermarkStrategy
from holdfast.common.job_client import JobClient
from holdfast.common.watermark_strategy import TimestampAssigner
from holdfast.datastream import StreamExecutionEnvironment
from holdfast.runtime.epoch import EpochSpec
from holdfast.testing import InProcessEngine, TestSource

READING = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()])
SPREAD = Types.TUPLE([Types.STRING(), Types.LONG()])
EXTREMES = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()])
HOUR = 3_600_000

#: Name, value and time of three sensors, every half an hour of two days.
READINGS = [(f"s{at % 3}", at * 37 % 101, at * HOUR // 2) for at in range(96)]


class Times(TimestampAssigner):
    def extract_timestamp(self, value: tuple[str, int, int], record_timestamp: int) -> int:
        return value[2]


def start(directory: Path, sink: Any, items: list[Any], **settings: str) -> JobClient:
    from acme_streams.aggregates import Spread
    from acme_streams.windows import ShiftWindows

    given = {
        "state.backend.type": "acme",
        "state.backend.acme.cache-limit": "2",
        "holdfast.job-id": "shifts",
        "holdfast.state.local-dir": str(directory / "local"),
        "execution.checkpointing.interval": "10 ms",
        "execution.checkpointing.dir": str(directory / "chk"),
        "execution.checkpointing.data-inline-threshold": "0 b",
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        "holdfast.checkpoint.upload-wait": "60 s",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "10",
        "restart-strategy.fixed-delay.delay": "1 ms",
        **settings,
    }
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(given))
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Times())
    readings = env.from_source(TestSource(items, READING), strategy, "readings").uid("readings")
    keyed = readings.key_by(lambda reading: reading[0], Types.STRING())
    spreads = keyed.window(ShiftWindows()).aggregate(Spread(), accumulator_type=EXTREMES, output_type=SPREAD)
    spreads.uid("spreads").sink_to(sink).uid("shelf")
    return env.execute_async("shifts")


def expected() -> list[list[Any]]:
    """By plain dictionaries."""
    shifts: dict[tuple[str, int, int], list[int]] = defaultdict(list)
    for name, value, time in READINGS:
        day, hour = divmod(time // HOUR, 24)
        shifts[name, day, sum(hour >= bound for bound in (6, 14, 22))].append(value)
    return sorted([name, max(values) - min(values)] for (name, _, _), values in shifts.items())


def in_epochs(*end: Any) -> list[Any]:
    """The readings, three in an epoch."""
    items: list[Any] = []
    for first in range(0, len(READINGS), 3):
        items += [*READINGS[first : first + 3], TestSource.PAUSE]
    return [*items, *end]


def losing(attempts: int) -> Callable[[EpochSpec], None]:
    """Lets attempt after attempt fail when it has run some epochs, its tasks having done their work."""
    seen: dict[int, int] = defaultdict(int)

    def after_epoch(spec: EpochSpec) -> None:
        seen[spec.attempt] += 1
        if spec.attempt <= attempts and seen[spec.attempt] == 5:
            raise OSError("the executors are gone")

    return after_epoch


def test_a_job_goes_through_failures(tmp_path: Path) -> None:
    from acme_streams.sink import ShelfSink

    sink = ShelfSink(tmp_path / "shelf")
    with InProcessEngine(after_epoch=losing(3)).installed() as engine:
        client = start(tmp_path, sink, in_epochs(TestSource.ABORT, TestSource.END))
        client.get_job_execution_result().result(60)
    assert max(attempt for attempt, _ in engine.epochs) == 5
    assert sorted(sink.published()) == expected()
    assert list(sink.open_transactions("shifts")) == []


def test_another_backend_goes_on_from_its_images(tmp_path: Path) -> None:
    """With another parallelism: entries are read from the images, by key groups."""
    from acme_streams.sink import ShelfSink

    sink = ShelfSink(tmp_path / "shelf")
    engine = InProcessEngine()
    engine.after_epoch = lambda spec: engine.control.cancel() if spec.epoch == 12 else None
    with engine.installed():
        # Every checkpoint is an image then, and none a few changed keys on top of an early one.
        client = start(tmp_path, sink, in_epochs(), **{"execution.checkpointing.incremental": "false"})
        client.get_job_execution_result().exception(60)
    (path,) = (tmp_path / "chk" / "shifts").glob("chk-*")
    written, _ = open_snapshot(str(path))
    engines = {
        subtask.keyed.native.engine
        for operator in written.operators
        for subtask in operator.subtasks
        if subtask.keyed is not None and subtask.keyed.native is not None
    }
    assert engines == {"acme"}
    assert len(sink.published()) < len(expected())
    with InProcessEngine(default_parallelism=3).installed():
        other = {"holdfast.job-id": "later", "state.backend.type": "heap", "execution.state-recovery.path": str(path)}
        client = start(tmp_path, sink, in_epochs(TestSource.END), **other)
        client.get_job_execution_result().result(60)
    assert sorted(sink.published()) == expected()
