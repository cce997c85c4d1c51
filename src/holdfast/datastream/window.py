"""Windows, assigners, triggers and evictors, under PyFlink's module path."""

from holdfast.common.constants import MAX_LONG_VALUE, MIN_LONG_VALUE
from holdfast.coverage.answers import answer_missing_names as _answer_missing_names
from holdfast.runtime.windowing.assigners import GlobalWindows, MergingWindowAssigner, WindowAssigner
from holdfast.runtime.windowing.count_windows import CountSlidingWindowAssigner, CountTumblingWindowAssigner
from holdfast.runtime.windowing.evictors import (
    CountEvictor,
    DeltaEvictor,
    Evictor,
    EvictorContext,
    TimeEvictor,
    TimestampedValue,
)
from holdfast.runtime.windowing.serializers import (
    CountWindowSerializer,
    GlobalWindowSerializer,
    TimeWindowSerializer,
    WindowSerializer,
)
from holdfast.runtime.windowing.session_windows import (
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
    SessionWindowTimeGapExtractor,
)
from holdfast.runtime.windowing.time_triggers import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    EventTimeTrigger,
    ProcessingTimeTrigger,
)
from holdfast.runtime.windowing.time_windows import (
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from holdfast.runtime.windowing.triggers import CountTrigger, NeverTrigger, PurgingTrigger, Trigger, TriggerResult
from holdfast.runtime.windowing.windows import CountWindow, GlobalWindow, TimeWindow, Window

__all__ = [
    "MAX_LONG_VALUE",
    "MIN_LONG_VALUE",
    "ContinuousEventTimeTrigger",
    "ContinuousProcessingTimeTrigger",
    "CountEvictor",
    "CountSlidingWindowAssigner",
    "CountTrigger",
    "CountTumblingWindowAssigner",
    "CountWindow",
    "CountWindowSerializer",
    "DeltaEvictor",
    "DynamicEventTimeSessionWindows",
    "DynamicProcessingTimeSessionWindows",
    "EventTimeSessionWindows",
    "EventTimeTrigger",
    "Evictor",
    "EvictorContext",
    "GlobalWindow",
    "GlobalWindowSerializer",
    "GlobalWindows",
    "MergingWindowAssigner",
    "NeverTrigger",
    "ProcessingTimeSessionWindows",
    "ProcessingTimeTrigger",
    "PurgingTrigger",
    "SessionWindowTimeGapExtractor",
    "SlidingEventTimeWindows",
    "SlidingProcessingTimeWindows",
    "TimeEvictor",
    "TimeWindow",
    "TimeWindowSerializer",
    "TimestampedValue",
    "Trigger",
    "TriggerResult",
    "TumblingEventTimeWindows",
    "TumblingProcessingTimeWindows",
    "Window",
    "WindowAssigner",
    "WindowSerializer",
]

_answer_missing_names(__name__)
