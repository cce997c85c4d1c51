"""Options of what a program is held to and what its functions are given, which ``env.get_config()`` sets too."""

from __future__ import annotations

from typing import Any

from holdfast.common.option_types import BOOLEAN, DURATION, INTEGER, MAP, Option, choice
from holdfast.coverage.names import ACCEPTED

AUTO_WATERMARK_INTERVAL: Option[int | None] = Option(
    "pipeline.auto-watermark-interval",
    DURATION,
    None,
    "Time between two watermarks of a watermark strategy. Unset: every row moves the watermark, so that which rows are "
    "late does not depend on the clock. Set, watermarks are made between batches of rows, and at the latest by an "
    "epoch that is run for it. With 0 there is only the one at the end of the input.",
    default_text="every row",
)
GLOBAL_JOB_PARAMETERS: Option[Any] = Option(
    "pipeline.global-job-parameters",
    MAP,
    {},
    "What functions find by `runtime_context.get_job_parameter(key, default)`: `key:value,key:value`, or one key "
    "each as in `pipeline.global-job-parameters.key`.",
    default_text="none",
)
AUTO_GENERATED_UIDS: Option[bool] = Option(
    "pipeline.auto-generate-uids",
    BOOLEAN,
    True,
    "Operators without `uid()` get an id by their place in the program. With `false` they are an error.",
)
GENERIC_TYPES: Option[bool] = Option(
    "pipeline.generic-types",
    BOOLEAN,
    True,
    "Rows, keys and state whose type is not declared are pickled. With `false` they are an error, which names them.",
)

EXECUTION: tuple[Option[Any], ...] = (
    AUTO_WATERMARK_INTERVAL,
    GLOBAL_JOB_PARAMETERS,
    AUTO_GENERATED_UIDS,
    GENERIC_TYPES,
)

OBJECT_REUSE: Option[bool] = Option("pipeline.object-reuse", BOOLEAN, False, "")
CLOSURE_CLEANER: Option[str] = Option(
    "pipeline.closure-cleaner-level",
    choice({"RECURSIVE": "RECURSIVE", "TOP_LEVEL": "TOP_LEVEL", "NONE": "NONE"}),
    "RECURSIVE",
    "",
)
FORCE_KRYO: Option[bool] = Option("pipeline.force-kryo", BOOLEAN, False, "")
FORCE_AVRO: Option[bool] = Option("pipeline.force-avro", BOOLEAN, False, "")
SNAPSHOT_COMPRESSION: Option[bool] = Option("execution.checkpointing.snapshot-compression", BOOLEAN, False, "")
LATENCY_INTERVAL: Option[int] = Option("metrics.latency.interval", DURATION, 0, "")
CANCELLATION_INTERVAL: Option[int] = Option("task.cancellation.interval", INTEGER, 30_000, "")
CANCELLATION_TIMEOUT: Option[int] = Option("task.cancellation.timeout", INTEGER, 180_000, "")

_SETTERS: dict[str, Option[Any]] = {
    "enable_object_reuse": OBJECT_REUSE,
    "enable_closure_cleaner": CLOSURE_CLEANER,
    "enable_force_kryo": FORCE_KRYO,
    "enable_force_avro": FORCE_AVRO,
    "set_use_snapshot_compression": SNAPSHOT_COMPRESSION,
    "set_latency_tracking_interval": LATENCY_INTERVAL,
    "set_task_cancellation_interval": CANCELLATION_INTERVAL,
    "set_task_cancellation_timeout": CANCELLATION_TIMEOUT,
}
#: Settings that are kept and told, and have nothing to act on here: why.
EXECUTION_WITHOUT_EFFECT: dict[str, str] = {
    option.key: ACCEPTED[f"ExecutionConfig.{setter}"] for setter, option in _SETTERS.items()
}
EXECUTION_WITHOUT_EFFECT["pipeline.auto-type-registration"] = EXECUTION_WITHOUT_EFFECT[FORCE_KRYO.key]
