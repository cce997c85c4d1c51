"""The job whose files are damaged: script -> key_by -> Kinds -> file sink, which joins the files of three checkpoints.
Its rows are known; keyed state of three kinds and timers must agree with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from holdfast.common import Types, WatermarkStrategy
from holdfast.common.job_client import JobClient
from holdfast.common.watermark_strategy import TimestampAssigner
from holdfast.datastream import KeyedProcessFunction, RuntimeContext
from holdfast.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from tests.integration.programs import PAIR, Scripted, environment
from tests.job.counting import settings as counting_settings
from tests.job.test_file_sink_jobs import compacting, rows_in

JOB = "hostile"
KEYS = 6
#: A timer's row has the key plus this.
OF_TIMERS = 100
EPOCHS = [[(row % KEYS, row) for row in range(first, first + 24)] for first in range(0, 24 * 10, 24)]


class EventTime(TimestampAssigner):
    def extract_timestamp(self, value: tuple[int, int], record_timestamp: int) -> int:
        return value[1]


class Kinds(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.rows = runtime_context.get_list_state(ListStateDescriptor("rows", Types.LONG()))
        self.by_digit = runtime_context.get_map_state(MapStateDescriptor("digits", Types.LONG(), Types.LONG()))

    def process_element(self, value: tuple[int, int], ctx: KeyedProcessFunction.Context) -> Iterator[tuple[int, int]]:
        key, number = value
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        self.rows.add(number)
        self.by_digit.put(number % 4, (self.by_digit.get(number % 4) or 0) + 1)
        seen, digits = list(self.rows), sum(self.by_digit.values())
        assert seen == list(range(key, number + 1, KEYS)) and digits == count == len(seen), (key, seen, digits, count)
        ctx.timer_service().register_event_time_timer(number + 30)
        yield key, count

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[tuple[int, int]]:
        yield ctx.get_current_key() + OF_TIMERS, timestamp


def expected() -> list[tuple[int, int]]:
    """What must be published, sorted."""
    rows = [row for epoch in EPOCHS for row in epoch]
    return sorted([(key, number // KEYS + 1) for key, number in rows] + [(k + OF_TIMERS, n + 30) for k, n in rows])


def published(directory: Path) -> list[tuple[int, int]]:
    return rows_in(directory / "out")


def settings(directory: Path, backend: str, **changes: str) -> dict[str, str]:
    return counting_settings(
        directory,
        **{
            "holdfast.job-id": JOB,
            "state.backend.type": backend,
            "execution.checkpointing.num-retained": "2",
            "execution.checkpointing.incremental": "true",
            "execution.checkpointing.data-inline-threshold": "0 b",
            "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
            **changes,
        },
    )


def start(directory: Path, given: Mapping[str, str], ends: bool = True) -> JobClient:
    env = environment(**given)
    strategy: Any = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(EventTime())
    rows = env.from_source(Scripted(EPOCHS, ends), strategy, "script").uid("source")
    keyed = rows.key_by(lambda row: row[0], Types.LONG())
    keyed.process(Kinds(), output_type=PAIR).uid("kinds").sink_to(compacting(directory / "out", 3)).uid("sink")
    return env.execute_async(JOB)
