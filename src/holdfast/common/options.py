"""Every option that Holdfast reads, documented once. ``options_reference`` makes the reference page of them."""

from __future__ import annotations

from holdfast.common.backend_options import ROCKSDB, ROCKSDB_WITHOUT_EFFECT
from holdfast.common.dependency_options import DEPENDENCIES
from holdfast.common.execution_options import EXECUTION, EXECUTION_WITHOUT_EFFECT
from holdfast.common.high_availability_options import HIGH_AVAILABILITY, HIGH_AVAILABILITY_WITHOUT_EFFECT
from holdfast.common.lease_options import LEASE
from holdfast.common.option_types import BOOLEAN, DURATION, FLOAT, INTEGER, MEMORY, TEXT, Option, choice
from holdfast.common.rest_options import REST
from holdfast.common.spark_options import SPARK
from holdfast.types.settings import (
    CheckpointMode,
    ClaimMode,
    ExecutionMode,
    RestartKind,
    Retention,
    StorageKind,
    TextForm,
)

_CHECKPOINTING = "execution.checkpointing."
_RESTART = "restart-strategy."
_RECOVERY = "execution.state-recovery."

CHECKPOINT_INTERVAL: Option[int | None] = Option(
    _CHECKPOINTING + "interval",
    DURATION,
    None,
    "Time between two checkpoints. Unset: checkpointing is off. It is rounded up to the end of an epoch, and raised to "
    "the minimum pause if that is longer.",
    least=10,
)
CHECKPOINT_MODE: Option[CheckpointMode] = Option(
    _CHECKPOINTING + "mode",
    choice({mode.value: mode for mode in CheckpointMode}),
    CheckpointMode.EXACTLY_ONCE,
    "When sinks publish their results: `EXACTLY_ONCE` with the checkpoint that covers them, `AT_LEAST_ONCE` at the end "
    "of their epoch. State is exact in both.",
    older=(_CHECKPOINTING + "consistency-mode",),
)
CHECKPOINT_TIMEOUT: Option[int] = Option(
    _CHECKPOINTING + "timeout",
    DURATION,
    600_000,
    "A checkpoint that is not complete after this time, counted from its trigger, is aborted.",
    least=10,
)
CHECKPOINT_MIN_PAUSE: Option[int] = Option(
    _CHECKPOINTING + "min-pause",
    DURATION,
    0,
    "Least time between the end of a checkpoint and the trigger of the next.",
    most=365 * 86_400_000,
)
CHECKPOINT_MAX_CONCURRENT: Option[int] = Option(
    _CHECKPOINTING + "max-concurrent-checkpoints",
    INTEGER,
    1,
    "Checkpoints that may be in progress at the same time.",
    least=1,
)
CHECKPOINT_TOLERABLE_FAILURES: Option[int] = Option(
    _CHECKPOINTING + "tolerable-failed-checkpoints",
    INTEGER,
    0,
    "Consecutive failed checkpoints that do not fail the job.",
    least=0,
)
CHECKPOINT_RETENTION: Option[Retention] = Option(
    _CHECKPOINTING + "externalized-checkpoint-retention",
    choice({retention.value: retention for retention in Retention}),
    Retention.NO_EXTERNALIZED_CHECKPOINTS,
    "What a job leaves behind: nothing, its checkpoints when it failed, or also when it was cancelled.",
)
CHECKPOINT_NUM_RETAINED: Option[int] = Option(
    _CHECKPOINTING + "num-retained",
    INTEGER,
    1,
    "Completed checkpoints to keep. With two or more, a damaged newest one can be passed over.",
    older=("state.checkpoints.num-retained",),
    least=1,
)
CHECKPOINT_STORAGE: Option[StorageKind | None] = Option(
    _CHECKPOINTING + "storage",
    choice({storage.value: storage for storage in StorageKind}),
    None,
    "Where checkpoints are kept: in the driver's memory or in files. Unset: in files when a directory is set.",
    older=("state.checkpoint-storage",),
    default_text="by directory",
)
CHECKPOINT_DIRECTORY: Option[str | None] = Option(
    _CHECKPOINTING + "dir",
    TEXT,
    None,
    "Directory of checkpoints, a path or a URI (`file:`, `s3:`, `gs:`, `hdfs:`) that driver and executors can reach.",
    older=("state.checkpoints.dir", "state.backend.fs.checkpointdir"),
)
SAVEPOINT_DIRECTORY: Option[str | None] = Option(
    _CHECKPOINTING + "savepoint-dir",
    TEXT,
    None,
    "Directory of savepoints, a path or a URI, for those that are triggered without one.",
    older=("state.savepoints.dir", "savepoints.state.backend.fs.dir"),
)
CHECKPOINT_INCREMENTAL: Option[bool] = Option(
    _CHECKPOINTING + "incremental",
    BOOLEAN,
    True,
    "Write only what changed since the last completed checkpoint: changed keys, or new files of RocksDB. Unlike in "
    "Flink it is on by default: it is never more than a full image, and a chain of deltas is rebased before it costs "
    "more than one.",
    older=("state.backend.incremental",),
)
CHECKPOINT_INLINE_THRESHOLD: Option[int] = Option(
    _CHECKPOINTING + "data-inline-threshold",
    MEMORY,
    20 << 10,
    "State of a subtask that is not larger is written into `_metadata` itself instead of a file of its own.",
    older=("state.storage.fs.memory-threshold", "state.backend.fs.memory-threshold"),
    most=1 << 20,
)
UPLOAD_WAIT: Option[int] = Option(
    "holdfast.checkpoint.upload-wait",
    DURATION,
    100,
    "How long a task waits for its snapshot to be stored. One that takes longer is stored while the next epochs run, "
    "and the checkpoint completes later.",
)
UPLOAD_HEARTBEAT_TIMEOUT: Option[int] = Option(
    "holdfast.checkpoint.upload-heartbeat-timeout",
    DURATION,
    10_000,
    "An upload that goes on behind its epoch says every second that it is alive; when it does not for this long, its "
    "checkpoint is aborted.",
    least=2_000,
)

BACKEND: Option[str] = Option(
    "state.backend.type",
    TEXT,
    "lmdb",
    "Store of keyed state: `heap` (or `hashmap`), `lmdb`, `rocksdb`, or the name of an installed backend. The old "
    "names `jobmanager` and `filesystem` are `heap` with that checkpoint storage. Unlike in Flink, where it is "
    "`hashmap`, the default is `lmdb`: state on disk survives the Python worker that wrote it.",
    older=("state.backend",),
)
LOCAL_DIRECTORY: Option[str | None] = Option(
    "holdfast.state.local-dir",
    TEXT,
    None,
    "Directory on every executor's host for the stores of keyed state. It is made for the user of the executors alone, "
    "and refused when somebody else made it or can write to it.",
    default_text="a directory of the user in the host's temporary directory",
)

RESTART_STRATEGY: Option[RestartKind | None] = Option(
    _RESTART + "type",
    choice(
        {
            "none": RestartKind.NONE,
            "off": RestartKind.NONE,
            "disable": RestartKind.NONE,
            "fixed-delay": RestartKind.FIXED_DELAY,
            "fixeddelay": RestartKind.FIXED_DELAY,
            "failure-rate": RestartKind.FAILURE_RATE,
            "failurerate": RestartKind.FAILURE_RATE,
            "exponential-delay": RestartKind.EXPONENTIAL_DELAY,
            "exponentialdelay": RestartKind.EXPONENTIAL_DELAY,
        }
    ),
    None,
    "What follows a failure.",
    older=("restart-strategy",),
    default_text="`exponential-delay` with checkpointing, else `none`",
)
FIXED_DELAY_ATTEMPTS: Option[int] = Option(
    _RESTART + "fixed-delay.attempts", INTEGER, 1, "Restarts before the job fails.", least=0
)
FIXED_DELAY_DELAY: Option[int] = Option(
    _RESTART + "fixed-delay.delay", DURATION, 1_000, "Time between a failure and the restart."
)
FAILURE_RATE_MAX: Option[int] = Option(
    _RESTART + "failure-rate.max-failures-per-interval",
    INTEGER,
    1,
    "Failures within the interval that do not fail the job.",
    least=1,
)
FAILURE_RATE_INTERVAL: Option[int] = Option(
    _RESTART + "failure-rate.failure-rate-interval",
    DURATION,
    60_000,
    "Interval in which failures are counted.",
    least=1,
)
FAILURE_RATE_DELAY: Option[int] = Option(
    _RESTART + "failure-rate.delay", DURATION, 1_000, "Time between a failure and the restart."
)
EXPONENTIAL_INITIAL: Option[int] = Option(
    _RESTART + "exponential-delay.initial-backoff", DURATION, 1_000, "Time before the first restart.", least=1
)
EXPONENTIAL_MAX: Option[int] = Option(
    _RESTART + "exponential-delay.max-backoff", DURATION, 60_000, "Longest time before a restart.", least=1
)
EXPONENTIAL_MULTIPLIER: Option[float] = Option(
    _RESTART + "exponential-delay.backoff-multiplier",
    FLOAT,
    1.5,
    "Each restart waits so many times as long as the one before; above 1.",
)
EXPONENTIAL_RESET: Option[int] = Option(
    _RESTART + "exponential-delay.reset-backoff-threshold",
    DURATION,
    3_600_000,
    "After so long without a failure the time before a restart begins anew.",
    least=1,
)
EXPONENTIAL_JITTER: Option[float] = Option(
    _RESTART + "exponential-delay.jitter-factor",
    FLOAT,
    0.1,
    "Part of the time before a restart that is random.",
    least=0,
    most=1,
)
EXPONENTIAL_ATTEMPTS: Option[int | None] = Option(
    _RESTART + "exponential-delay.attempts-before-reset-backoff",
    INTEGER,
    None,
    "Restarts without a quiet time in between before the job fails.",
    least=1,
    default_text="no limit",
)
SAME_FAILURES: Option[int | None] = Option(
    "holdfast.restart.same-failures",
    INTEGER,
    None,
    "The program may fail in the same way (error, operator, line) so often without a completed checkpoint in between; "
    "then the job fails. 0 is without end.",
    least=0,
    default_text="3 where no restart strategy is configured, else without end",
)

RECOVERY_PATH: Option[str | None] = Option(
    _RECOVERY + "path",
    TEXT,
    None,
    "Checkpoint or savepoint to start from: its directory or its `_metadata`.",
    older=("execution.savepoint.path",),
)
RECOVERY_IGNORE_UNCLAIMED: Option[bool] = Option(
    _RECOVERY + "ignore-unclaimed-state",
    BOOLEAN,
    False,
    "Start although the snapshot has state of operators that the program does not have (`--allowNonRestoredState`).",
    older=("execution.savepoint.ignore-unclaimed-state",),
)
RECOVERY_CLAIM_MODE: Option[ClaimMode] = Option(
    _RECOVERY + "claim-mode",
    choice({mode.value: mode for mode in ClaimMode}),
    ClaimMode.NO_CLAIM,
    "Who owns the snapshot that a job starts from. `NO_CLAIM`: it stays the user's, and no checkpoint needs it once "
    "the first one has completed. `CLAIM`: the job deletes it when its own checkpoints have taken its place; no other "
    "job may use it. `LEGACY`: as `NO_CLAIM`.",
    older=("execution.savepoint-restore-mode",),
)
RECOVERY_FROM_LOCAL: Option[bool] = Option(
    _RECOVERY + "from-local",
    BOOLEAN,
    True,
    "After a failure, a subtask on a host that still has its keyed state as of the restored checkpoint goes on with "
    "that instead of reading the checkpoint's files. On by default, unlike in Flink.",
    older=("state.backend.local-recovery",),
)
STATE_ALLOW_PICKLE: Option[bool] = Option(
    "holdfast.state.allow-pickle",
    BOOLEAN,
    False,
    "Start from a checkpoint or savepoint although some of its state is pickled (`--allow-pickle`): whoever can write "
    "that snapshot then runs code in the job. Without it such a start is refused, naming the states. A job's own "
    "checkpoints, which it goes on from after a failure, are not meant.",
)
RECOVERY_ACCEPT_REPEATS: Option[bool] = Option(
    "holdfast.recovery.accept-repeated-output",
    BOOLEAN,
    False,
    "When the newest checkpoint cannot be read and its results were published already, go back to the one before it "
    "all the same; what came after that one is then published a second time.",
)
RECOVERY_CHANGE_MAX_PARALLELISM: Option[bool] = Option(
    "holdfast.recovery.change-max-parallelism",
    BOOLEAN,
    False,
    "Allow operators another maximum parallelism than the snapshot they start from. Their key groups are computed anew "
    "from the stored keys: every subtask reads all keyed state of its operator, and the next checkpoint is full.",
)

PARALLELISM: Option[int | None] = Option(
    "parallelism.default",
    INTEGER,
    None,
    "Subtasks of operators that set no parallelism of their own.",
    least=1,
    most=32_768,
    default_text="the cores of the Spark application",
)
MAX_PARALLELISM: Option[int] = Option(
    "pipeline.max-parallelism",
    INTEGER,
    -1,
    "Key groups of every operator; -1 chooses by parallelism. Once there is state to restore it changes only with "
    "`holdfast.recovery.change-max-parallelism`.",
    least=-1,
    most=32_768,
)

EXECUTION_MODE: Option[ExecutionMode] = Option(
    "execution.runtime-mode",
    choice({mode.value: mode for mode in ExecutionMode}),
    ExecutionMode.STREAMING,
    "`BATCH` gives final results only, needs bounded sources and takes no checkpoints. `AUTOMATIC` is `BATCH` where "
    "all sources are bounded, else `STREAMING`.",
)
OPERATOR_CHAINING: Option[bool] = Option(
    "pipeline.operator-chaining.enabled",
    BOOLEAN,
    True,
    "Run neighbours with one row path between them in one task.",
    older=("pipeline.operator-chaining",),
)
TEXT_FORM: Option[TextForm] = Option(
    "holdfast.text-form",
    choice({form.value: form for form in TextForm}),
    TextForm.FLINK,
    "How `print()` and `Encoder.simple_string_encoder()` write rows of a declared type: as PyFlink does (`(hi,4)`, "
    "`+I[...]`), or `PYTHON`, as `str()` does. Rows of no declared type are always written so.",
)

EPOCH_MAX_ROWS: Option[int] = Option(
    "holdfast.epoch.max-rows", INTEGER, 500_000, "Rows that all subtasks of a source read in one epoch.", least=1
)
EPOCH_MAX_TIME: Option[int] = Option(
    "holdfast.epoch.max-time", DURATION, 2_000, "Time after which sources stop reading for this epoch.", least=1
)
EPOCH_MIN_INTERVAL: Option[int | None] = Option(
    "holdfast.epoch.min-interval",
    DURATION,
    None,
    "Least time from the begin of an epoch to the begin of the next. Unset: sources that have more than an epoch reads "
    "are read again at once, others when `holdfast.epoch.target-latency` is over.",
    default_text="auto",
)
EPOCH_TARGET_LATENCY: Option[int] = Option(
    "holdfast.epoch.target-latency",
    DURATION,
    200,
    "How long a row may wait for the epoch that reads it, where there are few rows. A shorter one costs more epochs; 0 "
    "lets one follow the other at once.",
)
EPOCH_IDLE_WAIT: Option[int] = Option(
    "holdfast.epoch.idle-wait", DURATION, 500, "Pause before the next epoch when sources had nothing to read."
)
EPOCH_MAX_IDLE_WAIT: Option[int] = Option(
    "holdfast.epoch.max-idle-wait",
    DURATION,
    10_000,
    "An epoch begins at least so often, although the driver sees that no source has anything: directories without new "
    "files, topics without new records. Of other sources only an epoch can tell, after `holdfast.epoch.idle-wait`.",
)
STREAM_INTERVAL: Option[int] = Option(
    "holdfast.stream.interval",
    DURATION,
    0,
    "Least time between the micro-batches of Spark's streams; 0 makes the next one as soon as Spark may go on.",
)
STREAM_AVAILABLE_NOW: Option[bool] = Option(
    "holdfast.stream.available-now",
    BOOLEAN,
    False,
    "Spark's streams end behind what is there when the job starts, as with Spark's trigger of this name.",
)
JOB_ID: Option[str | None] = Option(
    "holdfast.job-id",
    TEXT,
    None,
    "Fixed id of the job: a driver that starts again with it finds the checkpoints of the one before. A job that has "
    "ended is not begun anew under its id.",
    default_text="a new one for each execution",
)
FULL_TRACES: Option[bool] = Option(
    "holdfast.errors.full-traces",
    BOOLEAN,
    False,
    "Failures are told with all frames, those of Holdfast, PySpark and Java too.",
)
ENVELOPE_BYTES: Option[int] = Option(
    "holdfast.exchange.envelope-bytes",
    MEMORY,
    2 << 20,
    "Rows for one subtask are collected to about this size before they are sent.",
    least=1 << 10,
    most=32 << 20,
)
ROW_MAX_BYTES: Option[int] = Option(
    "holdfast.row.max-bytes",
    MEMORY,
    64 << 20,
    "A single row that is larger fails the job: Spark's shuffle holds it in memory several times.",
    least=1 << 10,
    most=1 << 30,
)
METRICS_PER_SUBTASK: Option[int] = Option(
    "holdfast.metrics.max-per-subtask",
    INTEGER,
    200,
    "Metrics that functions of one operator's subtask may register. More of them work, but are not reported, and a "
    "warning says so; more accumulators than this are an error.",
    least=0,
    most=100_000,
)

#: Keys of Flink under the prefixes that are checked, which have nothing to act on here.
WITHOUT_EFFECT: dict[str, str] = {
    _CHECKPOINTING + "unaligned.enabled": "an epoch ends with empty channels, so barriers never wait behind data",
    _CHECKPOINTING + "unaligned": "see `unaligned.enabled`",
    _CHECKPOINTING + "unaligned.forced": "see `unaligned.enabled`",
    _CHECKPOINTING + "unaligned.interruptible-timers.enabled": "see `unaligned.enabled`",
    _CHECKPOINTING + "unaligned.max-subtasks-per-channel-state-file": "channels have no state",
    _CHECKPOINTING + "aligned-checkpoint-timeout": "see `unaligned.enabled`",
    _CHECKPOINTING + "alignment-timeout": "see `unaligned.enabled`",
    _CHECKPOINTING + "interval-during-backlog": "sources report no backlog",
    _CHECKPOINTING + "write-buffer-size": "a checkpoint file is written at once",
    _CHECKPOINTING + "checkpoints-after-tasks-finish": "checkpoints go on when some sources have ended",
    _CHECKPOINTING + "checkpoints-after-tasks-finish.enabled": "see `checkpoints-after-tasks-finish`",
    _CHECKPOINTING + "create-subdir": "a job's checkpoints are always in a directory of its id",
    _CHECKPOINTING + "cleaner.parallel-mode": "files are deleted in the background",
    _CHECKPOINTING + "file-merging.enabled": "a subtask writes one file for a checkpoint",
    _CHECKPOINTING + "file-merging.across-checkpoint-boundary": "see `file-merging.enabled`",
    _CHECKPOINTING + "file-merging.max-file-size": "see `file-merging.enabled`",
    _CHECKPOINTING + "file-merging.max-space-amplification": "see `file-merging.enabled`",
    _CHECKPOINTING + "file-merging.max-subtasks-per-file": "see `file-merging.enabled`",
    _CHECKPOINTING + "file-merging.pool-blocking": "see `file-merging.enabled`",
    _CHECKPOINTING + "local-backup.enabled": "state stays on its executor between epochs anyway",
    _CHECKPOINTING + "local-backup.dirs": "see `holdfast.state.local-dir`",
    _CHECKPOINTING + "during-recovery.enabled": "a job restores completely before its first epoch",
    _RECOVERY + "without-channel-state.checkpoint-id": "channels have no state",
    **EXECUTION_WITHOUT_EFFECT,
    **HIGH_AVAILABILITY_WITHOUT_EFFECT,
    **ROCKSDB_WITHOUT_EFFECT,
}

#: Under these, a key that is neither known nor without effect is an error.
CHECKED_PREFIXES = (
    _CHECKPOINTING,
    _RESTART,
    _RECOVERY,
    "high-availability.",
    "holdfast.",
    "state.backend.rocksdb.",
)

ALL: tuple[Option[object], ...] = (
    *(value for value in list(globals().values()) if isinstance(value, Option)),
    *HIGH_AVAILABILITY,
    *ROCKSDB,
    *REST,
    *SPARK,
    *LEASE,
    *EXECUTION,
    *DEPENDENCIES,
)

#: Every spelling of every option, in lower case.
BY_SPELLING: dict[str, Option[object]] = {
    spelling: option for option in ALL for spelling in (option.key, *option.older)
}
