"""Sources whose event times go on at different speeds, for tests of watermark alignment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from holdfast.common import Duration, TimestampAssigner, Types, WatermarkStrategy
from holdfast.connectors.reading import Budget
from holdfast.datastream import ProcessFunction
from holdfast.runtime.batch import Batch
from holdfast.runtime.source import ReaderContext, ReadLimit, Source, SourceReader

ROW = Types.TUPLE([Types.STRING(), Types.LONG()])
PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])


class Ticks(Source):
    """Rows whose event times go up by ``step``, in batches of ``chunk``; only so many in an epoch, if told."""

    bounded = True
    max_parallelism = 1

    def __init__(self, name: str, times: Sequence[int], chunk: int = 10, an_epoch: int | None = None) -> None:
        self.name, self.times, self.chunk, self.an_epoch = name, list(times), chunk, an_epoch

    def output_type(self) -> Any:
        return ROW

    def position_type(self) -> Any:
        return int

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return _TicksReader(self, context.restored[0] if context.restored else 0)


class _TicksReader(SourceReader):
    def __init__(self, source: Ticks, position: int) -> None:
        self._source, self._position = source, position

    def read(self, limit: ReadLimit) -> Iterator[Batch]:
        budget, left = Budget(limit), self._source.an_epoch or len(self._source.times)
        while rows := min(budget.next_chunk(), self._source.chunk, left):
            times = self._source.times[self._position : self._position + rows]
            if not times:
                break
            self._position += len(times)
            left -= len(times)
            budget.spend(len(times))
            yield Batch([(self._source.name, time) for time in times])
        self.ended = self._position >= len(self._source.times)

    def positions(self) -> list[int]:
        return [self._position]


class Time(TimestampAssigner):
    def extract_timestamp(self, value: tuple[str, int], record_timestamp: int) -> int:
        return value[1]


def strategy(drift: int | None, idleness: int | None = None) -> WatermarkStrategy:
    made = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Time())
    if idleness is not None:
        made = made.with_idleness(Duration.of_millis(idleness))
    return made if drift is None else made.with_watermark_alignment("g", Duration.of_millis(drift))


class WithWatermark(ProcessFunction):
    """The time of each row, and the watermark that it met."""

    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterable[Any]:
        yield value[1], ctx.timer_service().current_watermark()
