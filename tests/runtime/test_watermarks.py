"""Watermarks row by row, independent of how rows are cut, and their minimum over channels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.common.time import Duration
from holdfast.common.types import Row
from holdfast.common.watermark_strategy import TimestampAssigner, TimestampColumn, WatermarkStrategy
from holdfast.datastream import StreamExecutionEnvironment
from holdfast.errors import FunctionError, ProgramError
from holdfast.runtime.batch import Batch, Origin
from holdfast.runtime.context import StateSnapshotContext
from holdfast.runtime.envelope import ChannelStatus
from holdfast.runtime.event_times import Times
from holdfast.runtime.operator import MAX_WATERMARK, MIN_WATERMARK
from holdfast.runtime.output import Output
from holdfast.runtime.watermarks import ChannelWatermarks, TimestampsAndWatermarksOperator
from holdfast.state.raw_state import RawStateOutputs
from holdfast.types.arrow import row_reader, row_writer
from holdfast.types.typeinfo import Types
from tests.runtime.operators import Clock, Downstream, set_up


class ByValue(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value)


def strategy(bound: int | None, idleness: int | None = None) -> WatermarkStrategy:
    made = (
        WatermarkStrategy.no_watermarks()
        if bound is None
        else WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(bound))
    ).with_timestamp_assigner(ByValue())
    return made if idleness is None else made.with_idleness(Duration.of_millis(idleness))


def generator(bound: int | None = 5, **kwargs: Any) -> tuple[TimestampsAndWatermarksOperator, Downstream]:
    return set_up(TimestampsAndWatermarksOperator, strategy(bound, kwargs.pop("idleness", None)), **kwargs)


def oracle(times: list[int], bound: int) -> list[int]:
    """The watermark in force before each row, computed one row at a time."""
    watermarks, highest = [], None
    for time in times:
        watermarks.append(MIN_WATERMARK if highest is None else max(MIN_WATERMARK, highest - bound - 1))
        highest = time if highest is None else max(highest, time)
    return watermarks


_any_time = st.integers(-(1 << 63), (1 << 63) - 1)


@given(
    st.lists(st.integers(-1000, 1000) | _any_time, max_size=30),
    st.sets(st.integers(0, 30)),
    st.sets(st.integers(0, 30)),
    st.integers(0, 2000),
)
@example([MIN_WATERMARK + 3, 0], {1}, set(), 5)
def test_each_rows_watermark_is_the_same_however_rows_are_cut(
    times: list[int], batch_ends: set[int], epoch_ends: set[int], bound: int
) -> None:
    operator, downstream = generator(bound)
    ends = sorted({e for e in batch_ends | epoch_ends if e < len(times)} | {len(times)})
    start = 0
    for end in ends:
        if end > start:
            operator.process(Batch(times[start:end]), 0)
        if end in epoch_ends:
            # The next epoch may run in another process, which takes up the operator's fields.
            fields, collected = operator.travelling_fields(), downstream
            operator, downstream = generator(bound)
            operator.adopt_fields(fields)
            downstream.rows = collected.rows
        start = end
    assert downstream.rows == [(t, t, w) for t, w in zip(times, oracle(times, bound), strict=True)]


def test_the_watermark_follows_each_batch_and_never_goes_back() -> None:
    operator, downstream = generator(5)
    for batch in ([10, 30, 20], [15], [40]):
        operator.process(Batch(batch), 0)
    assert downstream.watermarks == [24, 34]
    assert operator.watermark == 34


def test_a_strategy_without_watermarks_still_gives_times() -> None:
    operator, downstream = generator(None)
    operator.process(Batch([1, 2]), 0)
    assert downstream.rows == [(1, 1, MIN_WATERMARK), (2, 2, MIN_WATERMARK)]
    assert downstream.watermarks == []


def test_watermarks_of_upstream_end_here_but_for_the_last() -> None:
    operator, downstream = generator()
    operator.process_watermark(100)
    assert downstream.watermarks == []
    operator.process_watermark(MAX_WATERMARK)
    assert downstream.watermarks == [MAX_WATERMARK]


def test_times_of_the_source_are_kept_where_no_assigner_is_given() -> None:
    operator, downstream = set_up(TimestampsAndWatermarksOperator, WatermarkStrategy.for_monotonous_timestamps())
    operator.process(Batch(["a", "b"], [7, 9], [MIN_WATERMARK] * 2), 0)
    assert downstream.rows == [("a", 7, MIN_WATERMARK), ("b", 9, 6)]
    with pytest.raises(FunctionError, match="add with_timestamp_assigner"):
        operator.process(Batch(["c"]), 0)


def test_an_assigner_that_raises_names_the_row() -> None:
    operator, _ = generator()
    with pytest.raises(FunctionError, match=r"operator 'Timestamps', subtask 1/1: ValueError: .* the row was 'x'"):
        operator.process(Batch([1, "x"]), 0)


ROW = Types.ROW_NAMED(["name", "at"], [Types.STRING(), Types.INT()])


class Doubled(TimestampColumn):
    """Says something else than the column."""

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return 2 * super().extract_timestamp(value, record_timestamp)


class Batches:
    def __init__(self) -> None:
        self.given: list[Batch] = []

    def collect(self, batch: Batch) -> None:
        self.given.append(batch)


def by_column(assigner: TimestampAssigner) -> tuple[TimestampsAndWatermarksOperator, Batches]:
    """Watermarks of rows with a declared type, with what it gives as it is."""
    made = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(assigner)
    operator, _ = set_up(TimestampsAndWatermarksOperator, made)
    operator.spec = replace(operator.spec, output_type=ROW)
    operator.output, batches = Output(), Batches()
    operator.output.add_collector(batches)
    return operator, batches


@pytest.mark.parametrize("column", ["at", 1])
@pytest.mark.parametrize("form", ["columns", "rows"])
def test_a_column_of_times(column: str | int, form: str) -> None:
    operator, batches = by_column(TimestampColumn(column))
    rows = [Row("a", 5), ("b", 3), Row("c", 9)]

    def read(batch: Any) -> list[Any]:
        raise AssertionError("nobody needs Python rows")

    operator.process(Batch.of_arrow(row_writer(ROW)(rows), read) if form == "columns" else Batch(rows), 0)
    (batch,) = batches.given
    assert (batch.timestamps, batch.watermarks) == ([5, 3, 9], [MIN_WATERMARK, 4, 4])
    assert operator.watermark == 8


def test_a_time_that_is_null_names_the_row() -> None:
    operator, _ = by_column(TimestampColumn("at"))
    columns = row_writer(ROW)([Row("a", 5), Row("b", None)])
    for batch in (Batch.of_arrow(columns, row_reader(ROW)), Batch([Row("a", 5), ("b", None)])):
        with pytest.raises(FunctionError, match=r"the field 'at', which is the event time, is null.*'b'"):
            operator.process(batch, 0)


def test_an_assigner_made_of_a_column_of_times_is_asked() -> None:
    operator, batches = by_column(Doubled("at"))
    operator.process(Batch.of_arrow(row_writer(ROW)([Row("a", 5)]), row_reader(ROW)), 0)
    assert batches.given[0].timestamps == [10]


def test_a_column_of_times_of_rows_without_a_declared_type() -> None:
    made = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(TimestampColumn("at"))
    operator, downstream = set_up(TimestampsAndWatermarksOperator, made)
    operator.process(Batch([Row(name="a", at=5)]), 0)
    assert [time for _, time, _ in downstream.rows] == [5]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("when", "have no such field; they have name, at"),
        (2, "have no such field; they have name, at"),
        ("name", "the field is STRING; expected an integer of milliseconds"),
    ],
)
def test_a_column_that_is_none_of_times_is_refused(column: str | int, message: str) -> None:
    rows = StreamExecutionEnvironment.get_execution_environment().from_collection([Row("a", 1)], ROW)
    made = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(TimestampColumn(column))
    with pytest.raises(ProgramError, match=message):
        rows.assign_timestamps_and_watermarks(made)


def test_the_highest_time_is_state_and_a_restore_takes_the_lowest_promise() -> None:
    first, _ = generator(0)
    second, _ = generator(0)
    for operator, time in ((first, 50), (second, 80)):
        operator.process(Batch([time]), 0)
        operator.snapshot_state(StateSnapshotContext(1, 0, RawStateOutputs("here", None)))
    (one,), (other,) = (o.environment.operator_state.snapshot() for o in (first, second))
    restored, downstream = generator(0, restored=(one, other))
    restored.process(Batch([10]), 0)
    assert downstream.rows == [(10, 10, 49)]


def test_idle_after_the_time_of_the_strategy_and_active_with_the_next_row() -> None:
    clock = Clock(1000)
    operator, _ = generator(0, clock=clock, idleness=200)
    assert not operator.idle
    clock.now = 1200
    assert operator.idle
    operator.process(Batch([1]), 0)
    assert not operator.idle
    clock.now = 1399
    assert not operator.idle


def test_without_idleness_a_stream_never_is_idle() -> None:
    clock = Clock(0)
    operator, _ = generator(0, clock=clock)
    clock.now = 1 << 40
    assert not operator.idle


# -- the watermark over channels --------------------------------------------------------------------------------------


def gate(*channels: ChannelStatus | None) -> ChannelWatermarks:
    watermarks = ChannelWatermarks()
    for channel, status in enumerate(channels):
        watermarks.expect(0, channel)
        if status is not None:
            watermarks.update(0, channel, status)
    return watermarks


def active(watermark: int) -> ChannelStatus:
    return ChannelStatus(watermark, False, False)


def idle(watermark: int) -> ChannelStatus:
    return ChannelStatus(watermark, True, False)


ENDED = ChannelStatus(MAX_WATERMARK, False, True)


@pytest.mark.parametrize(
    ("channels", "expected"),
    [
        ([active(5), active(3)], 3),
        ([active(5), None], MIN_WATERMARK),
        ([active(5), idle(3)], 5),
        ([active(5), ENDED], 5),
        ([idle(5), idle(3)], 5),
        ([ENDED, ENDED], MAX_WATERMARK),
        ([], MIN_WATERMARK),
    ],
    ids=["minimum", "one silent", "one idle", "one ended", "all idle", "all ended", "no channel"],
)
def test_the_minimum_over_active_channels(channels: list[ChannelStatus | None], expected: int) -> None:
    assert gate(*channels).current() == expected


def test_a_channel_does_not_go_back() -> None:
    watermarks = gate(active(10), active(20))
    assert watermarks.update(0, 0, active(7)) == 10
    assert watermarks.current() == 10


def test_idle_and_ended_of_all_channels() -> None:
    assert gate(idle(1), ENDED).idle
    assert not gate(idle(1), active(1)).idle
    assert not gate(ENDED, ENDED).idle
    assert gate(ENDED, ENDED).ended
    assert not gate(ENDED, idle(1)).ended
    assert not gate().idle


def test_an_idle_channel_that_wakes_up_counts_again() -> None:
    watermarks = gate(active(50), idle(3))
    assert watermarks.current() == 50
    assert watermarks.update(0, 1, active(10)) == 10


@given(
    st.lists(st.tuples(st.integers(-50, 50), st.booleans(), st.booleans()), max_size=4),
    st.lists(st.integers(-60, 60), min_size=1, max_size=10),
)
def test_rows_of_a_channel_are_held_back_by_the_others(others: list[tuple[int, bool, bool]], rows: list[int]) -> None:
    watermarks = gate(active(0), *(ChannelStatus(*other) for other in others))
    limit = min((w for w, is_idle, ended in others if not is_idle and not ended), default=MAX_WATERMARK)
    assert watermarks.cap(0, 0, Times(rows)).listed == [min(row, limit) for row in rows]


def test_what_channels_promised_is_remembered_in_another_process() -> None:
    before = gate(active(5), idle(3), ENDED)
    after = gate(None, None, None)
    after.load(before.dump())
    assert after.dump() == before.dump()
    assert after.current() == 5


def of_split(split: str, times: list[int], among: str) -> Batch:
    batch = Batch(list(times))
    batch.origin = Origin(split, frozenset(among), times)
    return batch


def test_a_split_that_is_ahead_does_not_make_rows_of_another_late() -> None:
    operator, downstream = generator(0)
    operator.process(of_split("a", [100, 200], "ab"), 0)
    assert downstream.watermarks == [], "split b has said nothing yet"
    operator.process(of_split("b", [10, 150], "ab"), 0)
    operator.process(of_split("a", [300], "ab"), 0)
    assert downstream.watermarks == [149]
    assert [watermark for _, _, watermark in downstream.rows[2:]] == [MIN_WATERMARK, 9, 149]
    operator.process(of_split("a", [301], "a"), 0)
    assert downstream.watermarks == [149, 300], "split b has ended"


def test_a_new_split_does_not_take_promises_back() -> None:
    operator, downstream = generator(0)
    operator.process(of_split("a", [100], "a"), 0)
    operator.process(of_split("b", [5], "ab"), 0)
    operator.process(of_split("a", [500], "ab"), 0)
    operator.process(of_split("b", [400], "ab"), 0)
    assert downstream.watermarks == [99, 399]
    assert downstream.rows[1] == (5, 5, 99)


def test_an_idle_split_no_longer_holds_back_the_others() -> None:
    clock = Clock(0)
    operator, downstream = generator(0, idleness=1000, clock=clock)
    operator.process(of_split("a", [10], "ab"), 0)
    clock.now = 900
    operator.process(of_split("b", [70], "ab"), 0)
    clock.now = 1000
    operator.fire_processing_timers(clock.now)
    assert downstream.watermarks == [9, 69]
    assert not operator.idle
    clock.now = 1900
    operator.fire_processing_timers(clock.now)
    assert downstream.watermarks == [9, 69] and operator.idle


def test_times_of_splits_are_restored_whichever_subtask_gets_them() -> None:
    operators = [generator(0)[0] for _ in range(2)]
    operators[0].process(of_split("a", [100], "a"), 0)
    operators[1].process(of_split("b", [50], "b"), 0)
    written = []
    for operator in operators:
        operator.snapshot_state(StateSnapshotContext(1, 0, RawStateOutputs("here", None)))
        written += operator.environment.operator_state.snapshot()
    operator, downstream = generator(0, restored=tuple(written))
    operator.process(of_split("a", [60], "ab"), 0)
    assert downstream.rows == [(60, 60, 49)]
    operator.process(of_split("b", [90], "ab"), 0)
    assert downstream.watermarks == [49, 89]


def test_record_times_stand_in_for_an_assigner() -> None:
    operator, downstream = set_up(TimestampsAndWatermarksOperator, WatermarkStrategy.for_monotonous_timestamps())
    batch = of_split("a", [7, 9], "a")
    operator.process(batch, 0)
    assert downstream.rows == [(7, 7, MIN_WATERMARK), (9, 9, 6)]
