"""Whole jobs whose backend, sink, window assigner, type of keys and aggregates are another project's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from ipaddress import IPv4Address
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.checkpoint.storage import open_snapshot
from holdfast.common import Configuration, Row, Types, WatermarkStrategy
from holdfast.common.job_client import JobClient
from holdfast.common.watermark_strategy import TimestampAssigner
from holdfast.datastream import StreamExecutionEnvironment
from holdfast.runtime.epoch import EpochSpec
from holdfast.testing import InProcessEngine, TestSource

if TYPE_CHECKING:
    from acme_streams.sink import ShelfSink

SPREAD = Types.TUPLE([Types.STRING(), Types.LONG()])
HOUR = 3_600_000

#: Address, value and time of three sensors, every half an hour of two days.
READINGS = [Row(IPv4Address(f"10.0.0.{at % 3}"), at * 37 % 101, at * HOUR // 2) for at in range(96)]


class Times(TimestampAssigner):
    def extract_timestamp(self, value: Row, record_timestamp: int) -> int:
        time: int = value[2]
        return time


def as_text(result: Any) -> tuple[str, int]:
    """The sensor and, last of the row, what was computed."""
    return str(result[0]), result[-1]


def start(directory: Path, items: list[Any], **settings: str) -> JobClient:
    """Publishes the spread of each shift, by a function of rows and by a known aggregate, and of all rows so far."""
    from acme_streams.aggregates import Range, Spread
    from acme_streams.types import Ipv4TypeInfo
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
    address, long = Ipv4TypeInfo(), Types.LONG()
    reading = Types.ROW_NAMED(["sensor", "value", "time"], [address, long, long])
    keyed = env.from_source(TestSource(items, reading), strategy, "readings").uid("readings").key_by("sensor")
    windows, extremes = keyed.window(ShiftWindows()), Types.TUPLE([address, long, long])
    results = {
        "spreads": windows.aggregate(Spread(), accumulator_type=extremes, output_type=Types.TUPLE([address, long])),
        "ranges": windows.aggregate(range=Range("value")),
        "totals": keyed.aggregate(range=Range("value")),
    }
    for name, result in results.items():
        texts = result.uid(name).map(as_text, SPREAD).uid(f"{name} as text")
        texts.sink_to(shelf(directory, name)).uid(f"{name} shelf")
    return env.execute_async("shifts")


def shelf(directory: Path, name: str) -> ShelfSink:
    from acme_streams.sink import ShelfSink

    return ShelfSink(directory / name)


def expected() -> list[list[Any]]:
    """The spreads of all shifts, by plain dictionaries."""
    shifts: dict[tuple[str, int, int], list[int]] = defaultdict(list)
    for sensor, value, time in READINGS:
        day, hour = divmod(time // HOUR, 24)
        shifts[str(sensor), day, sum(hour >= bound for bound in (6, 14, 22))].append(value)
    return sorted([sensor, max(values) - min(values)] for (sensor, _, _), values in shifts.items())


def check(directory: Path) -> None:
    for name in ("spreads", "ranges"):
        assert sorted(shelf(directory, name).published()) == expected()
    widest: dict[str, int] = {}
    for sensor, total in shelf(directory, "totals").published():
        widest[sensor] = max(total, widest.get(sensor, 0))
    values = {str(sensor): [reading[1] for reading in READINGS if reading[0] == sensor] for sensor, _, _ in READINGS}
    assert widest == {sensor: max(some) - min(some) for sensor, some in values.items()}


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
    with InProcessEngine(after_epoch=losing(3)).installed() as engine:
        client = start(tmp_path, in_epochs(TestSource.ABORT, TestSource.END))
        client.get_job_execution_result().result(60)
    assert max(attempt for attempt, _ in engine.epochs) == 5
    check(tmp_path)
    for name in ("spreads", "ranges", "totals"):
        assert list(shelf(tmp_path, name).open_transactions("shifts")) == []


def test_another_backend_goes_on_from_its_images(tmp_path: Path) -> None:
    """With another parallelism: entries are read from the images, by key groups."""
    engine = InProcessEngine()
    engine.after_epoch = lambda spec: engine.control.cancel() if spec.epoch == 12 else None
    with engine.installed():
        # Every checkpoint is an image then, and none a few changed keys on top of an early one.
        client = start(tmp_path, in_epochs(), **{"execution.checkpointing.incremental": "false"})
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
    assert len(shelf(tmp_path, "spreads").published()) < len(expected())
    with InProcessEngine(default_parallelism=3).installed():
        other = {"holdfast.job-id": "later", "state.backend.type": "heap", "execution.state-recovery.path": str(path)}
        client = start(tmp_path, in_epochs(TestSource.END), **other)
        client.get_job_execution_result().result(60)
    check(tmp_path)
