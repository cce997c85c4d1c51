"""The names of PyFlink's windows, by class, with the parameters that they have there."""

from __future__ import annotations

from typing import Final

_ASSIGNER = (
    "assign_windows(element, timestamp, context); get_default_trigger(env); get_window_serializer(); is_event_time()"
)
_MERGING = f"{_ASSIGNER}; merge_windows(windows, callback)"
_TRIGGER = (
    "on_element(element, timestamp, window, ctx); on_processing_time(time, window, ctx); "
    "on_event_time(time, window, ctx); can_merge(); on_merge(window, ctx); clear(window, ctx)"
)
_TRIGGER_CONTEXT = (
    "get_current_processing_time(); get_current_watermark(); register_processing_time_timer(time); "
    "register_event_time_timer(time); delete_processing_time_timer(time); delete_event_time_timer(time); "
    "get_partitioned_state(state_descriptor)"
)
_WINDOWED = (
    "trigger(trigger); allowed_lateness(time_ms); side_output_late_data(output_tag); "
    "reduce(reduce_function, window_function=None, output_type=None); "
    "aggregate(aggregate_function, window_function=None, accumulator_type=None, output_type=None); "
    "apply(window_function, output_type=None); process(process_window_function, output_type=None); "
    "get_execution_environment(); get_input_type()"
)
_WINDOW_CONTEXT = "window(); current_processing_time(); current_watermark(); window_state(); global_state()"

WINDOW_NAMES: Final[dict[str, str]] = {
    "WindowedStream": _WINDOWED,
    "AllWindowedStream": _WINDOWED,
    "WindowFunction": "apply(key, window, inputs)",
    "AllWindowFunction": "apply(window, inputs)",
    "ProcessWindowFunction": "process(key, context, elements); clear(context)",
    "ProcessWindowFunction.Context": _WINDOW_CONTEXT,
    "ProcessAllWindowFunction": "process(context, elements); clear(context)",
    "ProcessAllWindowFunction.Context": _WINDOW_CONTEXT,
    "Window": "max_timestamp()",
    "TimeWindow": (
        "start; end; max_timestamp(); intersects(other); cover(other); "
        "get_window_start_with_offset(timestamp, offset, window_size); merge_windows(windows, callback)"
    ),
    "CountWindow": "id; max_timestamp()",
    "GlobalWindow": "get(); max_timestamp()",
    "WindowAssigner": _ASSIGNER,
    "WindowAssigner.WindowAssignerContext": "get_current_processing_time(); get_runtime_context()",
    "MergingWindowAssigner": _MERGING,
    "MergingWindowAssigner.MergeCallback": "merge(to_be_merged, merge_result)",
    "SessionWindowTimeGapExtractor": "extract(element)",
    "TumblingEventTimeWindows": f"of(size, offset=None); {_ASSIGNER}",
    "TumblingProcessingTimeWindows": f"of(size, offset=None); {_ASSIGNER}",
    "SlidingEventTimeWindows": f"of(size, slide, offset=None); {_ASSIGNER}",
    "SlidingProcessingTimeWindows": f"of(size, slide, offset=None); {_ASSIGNER}",
    "EventTimeSessionWindows": f"with_gap(size); with_dynamic_gap(extractor); {_MERGING}",
    "ProcessingTimeSessionWindows": f"with_gap(size); with_dynamic_gap(extractor); {_MERGING}",
    "DynamicEventTimeSessionWindows": f"with_dynamic_gap(extractor); {_MERGING}",
    "DynamicProcessingTimeSessionWindows": f"with_dynamic_gap(extractor); {_MERGING}",
    "GlobalWindows": f"create(); {_ASSIGNER}",
    "CountTumblingWindowAssigner": f"of(window_size); {_ASSIGNER}",
    "CountSlidingWindowAssigner": f"of(window_size, window_slide); {_ASSIGNER}",
    "TriggerResult": "CONTINUE; FIRE_AND_PURGE; FIRE; PURGE; is_fire(); is_purge()",
    "Trigger": _TRIGGER,
    "Trigger.TriggerContext": _TRIGGER_CONTEXT,
    "Trigger.OnMergeContext": f"{_TRIGGER_CONTEXT}; merge_partitioned_state(state_descriptor)",
    "EventTimeTrigger": f"create(); {_TRIGGER}",
    "ProcessingTimeTrigger": f"create(); {_TRIGGER}",
    "ContinuousEventTimeTrigger": f"of(interval); {_TRIGGER}",
    "ContinuousProcessingTimeTrigger": f"of(interval); {_TRIGGER}",
    "PurgingTrigger": f"of(nested_trigger); {_TRIGGER}",
    "CountTrigger": f"of(window_size); {_TRIGGER}",
    "NeverTrigger": _TRIGGER,
    "TimeWindowSerializer": "__init__()",
    "CountWindowSerializer": "__init__()",
    "GlobalWindowSerializer": "__init__()",
}
