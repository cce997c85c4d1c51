"""A job whose functions count what they do, and whose output tells what they must have counted.

    numbers -> "mark": (number, attempt) -> key_by(n % keys) -> "place": keyed state -> sink

Every number is published once, with the attempt that computed it: the metrics of an attempt are those of its numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.common import JobClient, Types, WatermarkStrategy
from holdfast.common.accumulators import Histogram, LongCounter
from holdfast.datastream import KeyedProcessFunction, MapFunction, RuntimeContext
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.datastream.state import ValueStateDescriptor
from holdfast.runtime.metric_values import DistributionValue
from tests.integration.audited_job import UnevenNumbers
from tests.integration.programs import environment, published

PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])


class Mark(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        group = runtime_context.get_metrics_group().add_group("kind", "numbers")
        self.rows, self.sizes = group.counter("rows"), group.distribution("size")
        self.events = group.meter("events")
        self.attempt = runtime_context.get_attempt_number()
        self.total = LongCounter()
        runtime_context.add_accumulator("total", self.total)

    def map(self, value: int) -> tuple[int, int]:
        self.rows.inc()
        self.sizes.update(value)
        self.events.mark_event()
        self.total.add(value)
        return value, self.attempt


class Place(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.LONG()))
        self.rows = runtime_context.get_metrics_group().counter("rows")
        self.last = -1
        runtime_context.get_metrics_group().gauge("last", lambda: self.last)
        self.digits = Histogram()
        runtime_context.add_accumulator("digits", self.digits)

    def process_element(self, value: tuple[int, int], ctx: KeyedProcessFunction.Context) -> Iterator[tuple[int, int]]:
        self.rows.inc()
        self.digits.add(value[0] % 10)
        self.last = value[0]
        self.seen.update((self.seen.value() or 0) + 1)
        yield value


def start(directory: Path, settings: dict[str, str], rows: int, keys: int = 20) -> JobClient:
    given = {
        "holdfast.job-id": "counted",
        "holdfast.state.local-dir": str(directory / "local"),
        "execution.checkpointing.dir": str(directory / "checkpoints"),
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "20",
        "restart-strategy.fixed-delay.delay": "1 ms",
        **settings,
    }
    env = environment(**given)
    numbers = env.from_source(UnevenNumbers(rows, max(2, rows // 10)), WatermarkStrategy.no_watermarks(), "numbers")
    marked = numbers.map(Mark(), PAIR).name("mark").uid("mark")
    placed = marked.key_by(lambda row: row[0] % keys, Types.LONG()).process(Place(), PAIR).name("place").uid("place")
    placed.sink_to(FileSink.json(str(directory / "out"))).uid("sink")
    return env.execute_async("counted")


def readings(client: JobClient, operator: str) -> list[dict[str, Any]]:
    """What each subtask of an operator has reported."""
    graph = client.get_execution_graph()
    (operator_id,) = (found for found, name in graph.names.items() if name == operator)
    return [
        {reading.name + suffix: value for reading in told for suffix, value in reading.values.items()}
        for subtask in range(2)
        if (told := graph.metrics.of_subtask(operator_id, subtask))
    ]


def audit(client: JobClient, directory: Path, rows: int) -> int:
    """Compare what was counted with what was published: the numbers of the attempt that ended the job."""
    result = client.get_job_execution_result().result()
    out = published(directory / "out")
    assert [row[0] for row in out] == list(range(rows))
    # Functions count attempts from 0.
    attempt = result.get_history().attempt - 1
    mine = [number for number, of_attempt in out if of_attempt == attempt]
    marked, placed = readings(client, "mark"), readings(client, "place")
    assert sum(each["rows"] for each in marked) == len(mine)
    assert sum(each["rows"] for each in placed) == len(mine)
    assert sum(each["events_count"] for each in marked) == len(mine)
    sizes = [each for each in marked if each["size_count"]]
    whole = DistributionValue(
        sum(each["size_count"] for each in sizes),
        sum(each["size_sum"] for each in sizes),
        min((each["size_min"] for each in sizes), default=0),
        max((each["size_max"] for each in sizes), default=0),
    )
    assert whole == DistributionValue(len(mine), sum(mine), min(mine, default=0), max(mine, default=0))
    digits = {digit: count for digit in range(10) if (count := sum(number % 10 == digit for number in mine))}
    assert result.get_all_accumulator_results() == {"total": sum(mine), "digits": digits}
    return len(mine)
