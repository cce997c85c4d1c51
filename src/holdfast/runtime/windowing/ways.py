"""Which way the rows of windows take: by what the windows are, or as an operator is told."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from holdfast.errors import ProgramError
from holdfast.runtime.local_aggregation import FAR, Combination
from holdfast.runtime.row_path import RowsBy
from holdfast.runtime.windowing.batches_first import BatchesFirst
from holdfast.runtime.windowing.by_column import FoldingByColumn
from holdfast.runtime.windowing.by_row import FoldingByRow
from holdfast.runtime.windowing.contents import Evicted, Known, Listed
from holdfast.runtime.windowing.fixed_windows import FixedBatches
from holdfast.runtime.windowing.row_taker import OneByOne, RowTaker
from holdfast.runtime.windowing.session_windows import (
    DynamicEventTimeSessionWindows,
    EventTimeSessionWindows,
    SessionWindows,
)
from holdfast.runtime.windowing.sessions import SessionBatches
from holdfast.runtime.windowing.stored_contents import BatchContents, FoldedContents
from holdfast.runtime.windowing.time_triggers import EventTimeTrigger, ProcessingTimeTrigger
from holdfast.runtime.windowing.time_windows import (
    FixedSizeWindows,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from holdfast.types.typeinfo import TupleTypeInfo, TypeInformation

if TYPE_CHECKING:
    from holdfast.runtime.windowing.operator import WindowOperator
    from holdfast.runtime.windowing.window_spec import WindowSpec

#: Not subclasses of them, which may assign rows as they like.
_FIXED_SIZE = (
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
)
_SESSIONS = (EventTimeSessionWindows, DynamicEventTimeSessionWindows)


def way_of(spec: WindowSpec, key_type: TypeInformation) -> RowsBy:
    """The fastest way that gives what rows give one by one; or the one that the windows are told to take."""
    ways, told = _ways_of(spec, key_type), spec.path.by
    if told is not None and told not in ways:
        raise ProgramError(
            f"Rows were told to go into {spec.assigner!r} {told.value}. With this trigger and these contents they can "
            f"go {' or '.join(way.value for way in ways)}."
        )
    return ways[0] if told is None else told


def _ways_of(spec: WindowSpec, key_type: TypeInformation) -> tuple[RowsBy, ...]:
    """The ways that there are, the fastest first."""
    contents = spec.contents
    if isinstance(contents, Evicted) or not _has_usual_trigger(spec):
        return (RowsBy.ONE,)
    # Rows of a batch come to their contents without their times.
    timed = isinstance(contents, Known) and contents.timed
    if type(spec.assigner) in _FIXED_SIZE:
        by_column = isinstance(contents, Known) and contents.known.aggregation.by_column and _are_column_keys(key_type)
        by_batch = () if timed else (RowsBy.BATCH,)
        return (RowsBy.COLUMN, *by_batch, RowsBy.ONE) if by_column else (*by_batch, RowsBy.ONE)
    if type(spec.assigner) in _SESSIONS and not (timed or isinstance(contents, Listed)):
        return (RowsBy.SESSION, RowsBy.ONE)
    return (RowsBy.ONE,)


def _are_column_keys(key_type: TypeInformation) -> bool:
    """Whether equal keys of a type, each field of them, are equal to Arrow."""
    fields = key_type.field_types if isinstance(key_type, TupleTypeInfo) else (key_type,)
    return all(one.key_in_arrow for one in fields)


def _has_usual_trigger(spec: WindowSpec) -> bool:
    return type(spec.trigger) is (EventTimeTrigger if spec.assigner.is_event_time() else ProcessingTimeTrigger)


def row_taker(operator: WindowOperator) -> RowTaker:
    """What takes the rows of an operator."""
    plan, contents = operator.plan, operator.contents
    assert operator.spec.key_type is not None, "windows stand behind a key_by"
    way = way_of(plan, operator.spec.key_type)
    if way is RowsBy.ONE:
        return OneByOne(operator)
    if way is RowsBy.SESSION:
        sessions = SessionBatches(operator, cast(SessionWindows, plan.assigner), cast(FoldedContents, contents))
        return BatchesFirst(operator, sessions)
    assigner, contents = cast(FixedSizeWindows, plan.assigner), cast(BatchContents, contents)
    by_row = FoldingByRow(operator, contents, shared=assigner.most_windows > 1)
    if way is RowsBy.BATCH:
        return BatchesFirst(operator, FixedBatches(operator, assigner, by_row))
    by_column = FoldingByColumn(operator, contents, cast(Known, plan.contents).known, few=by_row)
    return BatchesFirst(operator, FixedBatches(operator, assigner, by_column))


def combined_on_the_way(spec: WindowSpec, key_type: TypeInformation) -> tuple[WindowSpec, Combination | None]:
    """The windows, and how their rows are put together before the exchange; None where they are not."""
    contents = spec.contents
    if not spec.path.combine or RowsBy.COLUMN not in _ways_of(spec, key_type):
        return spec, None
    assert isinstance(contents, Known), "nothing else is by column"
    combination = _combination_of(spec, contents)
    if combination is None:
        return spec, None
    return replace(spec, contents=Known(replace(contents.known, combined=True))), combination


def _combination_of(spec: WindowSpec, contents: Known) -> Combination | None:
    """None where what comes of rows that are put together would not be the same to the last bit, where late rows count
    one by one, and for windows without a sensible end.
    """
    assigner, aggregation = spec.assigner, contents.known.aggregation
    assert isinstance(assigner, FixedSizeWindows), "others are not by column"
    by_event = assigner.is_event_time()
    # Late rows go aside as they are, or make their windows fire, each of them.
    needed_late = by_event and (spec.late_tag is not None or spec.allowed_lateness > 0)
    # The columns of combined rows have names of their own.
    ambiguous = {partial.name for partial in aggregation.partials}.intersection(aggregation.key_columns)
    if not aggregation.exact or needed_late or ambiguous or assigner.size + assigner.slide >= FAR:
        return None
    # By processing time, rows are in the windows of the time at which they arrive.
    return Combination(aggregation, assigner.panes() if by_event else None, of_windows=True)
