"""Options of what a program is held to and what its functions are given, which ``env.get_config()`` sets too."""

from __future__ import annotations

from typing import Any

from holdfast.common.option_types import BOOLEAN, DURATION, INTEGER, MAP, Option, choice

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

_TYPES = "a type's serializer is chosen by its declaration alone"
#: Settings that are kept and told, and have nothing to act on here: why.
EXECUTION_WITHOUT_EFFECT: dict[str, str] = {
    OBJECT_REUSE.key: "rows pass from function to function as they are; between tasks they are copied",
    CLOSURE_CLEANER.key: "a function is sent with what it refers to, and no more",
    FORCE_KRYO.key: _TYPES,
    FORCE_AVRO.key: _TYPES,
    "pipeline.auto-type-registration": _TYPES,
    SNAPSHOT_COMPRESSION.key: "snapshots are compressed anyway; RocksDB's own files as RocksDB has them",
    LATENCY_INTERVAL.key: "there are no latency markers; how long epochs take is measured always",
    CANCELLATION_INTERVAL.key: "Spark ends the tasks of a cancelled epoch",
    CANCELLATION_TIMEOUT.key: "see `spark.task.reaper.killTimeout`",
}
