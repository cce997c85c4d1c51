"""From a configuration to the settings that the layers below use."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Any

from holdfast.common import execution_options, high_availability_options, lease_options, options, spark_options
from holdfast.common.backend_options import ROCKSDB
from holdfast.common.configuration import Configuration
from holdfast.common.dependencies_parser import dependency_settings
from holdfast.errors import ConfigurationError
from holdfast.types.dependencies import DependencySettings
from holdfast.types.settings import (
    BackendSettings,
    CheckpointSettings,
    EpochSettings,
    ExecutionMode,
    ExponentialDelaySettings,
    FailureRateSettings,
    FailureSettings,
    FixedDelaySettings,
    LeaseSettings,
    NoRestartSettings,
    ProgramSettings,
    RecoverySettings,
    RestartKind,
    RestartSettings,
    SparkSettings,
    StorageKind,
    TextForm,
    ZooKeeperAccess,
    ZooKeeperSettings,
    ZooKeeperTls,
)

#: Backend names of older Flink versions: the backend and the checkpoint storage that they stand for.
_OLDER_BACKENDS: dict[str, tuple[str, StorageKind | None]] = {
    "jobmanager": ("heap", StorageKind.JOBMANAGER),
    "filesystem": ("heap", StorageKind.FILESYSTEM),
    "hashmap": ("heap", None),
}

#: How often a program may fail in the same way where nothing is said about restarts.
_SAME_FAILURES = 3


@dataclass(frozen=True)
class ParsedSettings:
    """All settings of a job. ``parallelism`` and ``max_parallelism`` are None where nothing is set."""

    checkpoint: CheckpointSettings
    restart: RestartSettings
    backend: BackendSettings
    epoch: EpochSettings
    recovery: RecoverySettings
    spark: SparkSettings
    program: ProgramSettings
    dependencies: DependencySettings
    parallelism: int | None
    max_parallelism: int | None
    job_id: str | None
    mode: ExecutionMode
    chaining: bool
    zookeeper: ZooKeeperSettings | None
    text_form: TextForm
    failures: FailureSettings


def parse_settings(configuration: Configuration) -> ParsedSettings:
    """Read and check everything; raises ConfigurationError with the key, what was seen and what is allowed."""
    check_keys(configuration)
    checkpoint = checkpoint_settings(configuration)
    max_parallelism = configuration.get(options.MAX_PARALLELISM)
    if max_parallelism == 0:
        raise ConfigurationError(
            f"The option '{options.MAX_PARALLELISM.key}' is '0'; expected 1 to 32768, or -1 to choose by parallelism"
        )
    return ParsedSettings(
        checkpoint=checkpoint,
        restart=restart_settings(configuration, checkpoint.enabled),
        backend=backend_settings(configuration),
        epoch=epoch_settings(configuration),
        recovery=recovery_settings(configuration),
        spark=spark_settings(configuration),
        program=program_settings(configuration),
        dependencies=dependency_settings(configuration),
        parallelism=configuration.get(options.PARALLELISM),
        max_parallelism=None if max_parallelism == -1 else max_parallelism,
        job_id=configuration.get(options.JOB_ID),
        mode=configuration.get(options.EXECUTION_MODE),
        chaining=configuration.get(options.OPERATOR_CHAINING),
        zookeeper=_zookeeper_of_job(configuration),
        text_form=configuration.get(options.TEXT_FORM),
        failures=failure_settings(configuration),
    )


def spark_settings(configuration: Configuration) -> SparkSettings:
    without = configuration.get(spark_options.SPARK_INTERNALS_WITHOUT)
    return SparkSettings(
        conf={key: value for key, value in configuration.to_dict().items() if key.startswith("spark.")},
        internals=configuration.get(spark_options.SPARK_INTERNALS),
        without=frozenset(filter(None, (name.strip() for name in without.split(",")))),
        executor_wait_ms=configuration.get(spark_options.EXECUTOR_WAIT),
    )


def program_settings(configuration: Configuration) -> ProgramSettings:
    get = configuration.get
    return ProgramSettings(
        watermark_interval_ms=get(execution_options.AUTO_WATERMARK_INTERVAL),
        auto_uids=get(execution_options.AUTO_GENERATED_UIDS),
        generic_types=get(execution_options.GENERIC_TYPES),
        parameters=global_job_parameters(configuration),
    )


def global_job_parameters(configuration: Configuration) -> dict[str, str]:
    """Parameters that the option lists, and above them those with a key of their own."""
    option = execution_options.GLOBAL_JOB_PARAMETERS
    prefix = option.key + "."
    own = {key[len(prefix) :]: value for key, value in configuration.to_dict().items() if key.startswith(prefix)}
    listed: dict[str, str] = configuration.get(option)
    return {**listed, **own}


def check_keys(configuration: Configuration) -> None:
    """Raise for a key under one of the checked prefixes that does not exist, and name the nearest that does."""
    known = {*options.BY_SPELLING, *options.WITHOUT_EFFECT}
    for key in sorted(configuration.key_set()):
        plain = key.lower()
        if plain.startswith(options.CHECKED_PREFIXES) and plain not in known:
            near = difflib.get_close_matches(plain, sorted(known), n=1, cutoff=0.0)
            raise ConfigurationError(
                f"The option '{key}' does not exist; the nearest one is '{near[0]}'. "
                f"All options are in docs/reference/configuration.md"
            )


def checkpoint_settings(configuration: Configuration) -> CheckpointSettings:
    get = configuration.get
    interval, min_pause = get(options.CHECKPOINT_INTERVAL), get(options.CHECKPOINT_MIN_PAUSE)
    return CheckpointSettings(
        interval_ms=None if interval is None else max(interval, min_pause),
        mode=get(options.CHECKPOINT_MODE),
        timeout_ms=get(options.CHECKPOINT_TIMEOUT),
        min_pause_ms=min_pause,
        max_concurrent=get(options.CHECKPOINT_MAX_CONCURRENT),
        tolerable_failures=get(options.CHECKPOINT_TOLERABLE_FAILURES),
        retention=get(options.CHECKPOINT_RETENTION),
        num_retained=get(options.CHECKPOINT_NUM_RETAINED),
        directory=_checkpoint_directory(configuration),
        savepoint_directory=get(options.SAVEPOINT_DIRECTORY),
        incremental=get(options.CHECKPOINT_INCREMENTAL),
        inline_threshold=get(options.CHECKPOINT_INLINE_THRESHOLD),
        upload_wait_ms=get(options.UPLOAD_WAIT),
        heartbeat_timeout_ms=get(options.UPLOAD_HEARTBEAT_TIMEOUT),
        lease=lease_settings(configuration),
    )


def lease_settings(configuration: Configuration) -> LeaseSettings:
    interval, timeout = lease_options.LEASE_INTERVAL, lease_options.LEASE_TIMEOUT
    found = LeaseSettings(configuration.get(interval), configuration.get(timeout))
    if found.timeout_ms <= 2 * found.interval_ms:
        raise ConfigurationError(
            f"The option '{timeout.key}' is {found.timeout_ms} ms and '{interval.key}' is {found.interval_ms} ms; "
            "expected a timeout of more than two intervals, so that one late renewal costs nothing"
        )
    return found


def restart_settings(configuration: Configuration, checkpointing: bool) -> RestartSettings:
    """The strategy that is set; unset, a job with checkpoints starts again and one without does not."""
    kind = configuration.get(options.RESTART_STRATEGY)
    if kind is None:
        kind = RestartKind.EXPONENTIAL_DELAY if checkpointing else RestartKind.NONE
    if kind is RestartKind.NONE:
        return NoRestartSettings()
    if kind is RestartKind.FIXED_DELAY:
        return FixedDelaySettings(
            configuration.get(options.FIXED_DELAY_ATTEMPTS), configuration.get(options.FIXED_DELAY_DELAY)
        )
    if kind is RestartKind.FAILURE_RATE:
        return FailureRateSettings(
            configuration.get(options.FAILURE_RATE_MAX),
            configuration.get(options.FAILURE_RATE_INTERVAL),
            configuration.get(options.FAILURE_RATE_DELAY),
        )
    return _exponential_delay(configuration)


def failure_settings(configuration: Configuration) -> FailureSettings:
    """What was said about restarts holds: without a word a program that fails as before is not restarted for ever."""
    limit = configuration.get(options.SAME_FAILURES)
    if limit is None and not any(key.lower().startswith("restart-strategy") for key in configuration.key_set()):
        limit = _SAME_FAILURES
    return FailureSettings(limit or None, configuration.get(options.FULL_TRACES))


def backend_settings(configuration: Configuration) -> BackendSettings:
    name = configuration.get(options.BACKEND).lower()
    chosen: dict[str, Any] = {
        key.lower(): value
        for key, value in configuration.to_dict().items()
        if key.lower().startswith(("state.", "holdfast.state."))
    }
    chosen |= {option.key: configuration.get(option) for option in ROCKSDB if configuration.contains(option)}
    backend = _OLDER_BACKENDS.get(name, (name, None))[0]
    return BackendSettings(backend, chosen, configuration.get(options.LOCAL_DIRECTORY))


def epoch_settings(configuration: Configuration) -> EpochSettings:
    get = configuration.get
    return EpochSettings(
        max_rows=get(options.EPOCH_MAX_ROWS),
        max_time_ms=get(options.EPOCH_MAX_TIME),
        min_interval_ms=get(options.EPOCH_MIN_INTERVAL),
        target_latency_ms=get(options.EPOCH_TARGET_LATENCY),
        idle_wait_ms=get(options.EPOCH_IDLE_WAIT),
        max_idle_wait_ms=get(options.EPOCH_MAX_IDLE_WAIT),
        stream_interval_ms=get(options.STREAM_INTERVAL),
        stream_available_now=get(options.STREAM_AVAILABLE_NOW),
        envelope_bytes=get(options.ENVELOPE_BYTES),
        max_row_bytes=get(options.ROW_MAX_BYTES),
        max_metrics=get(options.METRICS_PER_SUBTASK),
    )


def recovery_settings(configuration: Configuration) -> RecoverySettings:
    get = configuration.get
    return RecoverySettings(
        path=get(options.RECOVERY_PATH),
        ignore_unclaimed=get(options.RECOVERY_IGNORE_UNCLAIMED),
        accept_repeated_output=get(options.RECOVERY_ACCEPT_REPEATS),
        change_max_parallelism=get(options.RECOVERY_CHANGE_MAX_PARALLELISM),
        allow_pickle=get(options.STATE_ALLOW_PICKLE),
        claim=get(options.RECOVERY_CLAIM_MODE),
        from_local=get(options.RECOVERY_FROM_LOCAL),
    )


def zookeeper_settings(configuration: Configuration) -> ZooKeeperSettings | None:
    """None when the job runs without standby drivers."""
    get, keys = configuration.get, high_availability_options
    if get(keys.TYPE) is keys.HighAvailabilityType.NONE:
        return None
    quorum = get(keys.QUORUM)
    if not quorum:
        raise _missing_with_zookeeper(keys.QUORUM.key, "the servers of ZooKeeper, 'host:port,host:port,...'")
    return ZooKeeperSettings(
        quorum=str(quorum),
        root=get(keys.ROOT),
        cluster_id=get(keys.CLUSTER_ID),
        session_timeout_ms=get(keys.SESSION_TIMEOUT),
        connection_timeout_ms=get(keys.CONNECTION_TIMEOUT),
        retry_wait_ms=get(keys.RETRY_WAIT),
        access=_zookeeper_access(configuration),
    )


def _zookeeper_access(configuration: Configuration) -> ZooKeeperAccess:
    get, keys = configuration.get, high_availability_options
    authorization = get(keys.AUTHORIZATION)
    if authorization is not None and not all(authorization.partition(":")):
        raise ConfigurationError(
            f"The option '{keys.AUTHORIZATION.key}' has no scheme, or no credential; expected 'scheme:credential', "
            "such as 'digest:user:password'"
        )
    tls = None
    if get(keys.TLS):
        tls = ZooKeeperTls(get(keys.TLS_AUTHORITY), get(keys.TLS_CERTIFICATE), get(keys.TLS_KEY))
    sasl = {} if get(keys.SASL_DISABLE) else _zookeeper_sasl(configuration)
    return ZooKeeperAccess(authorization, get(keys.ACCESS_LIST) is keys.AccessList.CREATOR, sasl, tls)


def _zookeeper_sasl(configuration: Configuration) -> dict[str, str]:
    get, keys = configuration.get, high_availability_options
    mechanism, user, password = get(keys.SASL_MECHANISM), get(keys.SASL_USER), get(keys.SASL_PASSWORD)
    if mechanism is keys.SaslMechanism.NONE:
        return {}
    if mechanism is keys.SaslMechanism.GSSAPI:
        return {"mechanism": mechanism.value, "service": get(keys.SASL_SERVICE)}
    if not user or not password:
        raise ConfigurationError(
            f"The option '{keys.SASL_MECHANISM.key}' is '{mechanism.value}'; it needs '{keys.SASL_USER.key}' and "
            f"'{keys.SASL_PASSWORD.key}'"
        )
    return {"mechanism": mechanism.value, "username": user, "password": password}


def _zookeeper_of_job(configuration: Configuration) -> ZooKeeperSettings | None:
    found = zookeeper_settings(configuration)
    if found is not None and not configuration.get(options.JOB_ID):
        raise _missing_with_zookeeper(options.JOB_ID.key, "the id under which all drivers of the job know it")
    return found


def _missing_with_zookeeper(key: str, meaning: str) -> ConfigurationError:
    return ConfigurationError(
        f"The option '{high_availability_options.TYPE.key}' is 'zookeeper' and '{key}' is not set; expected {meaning}"
    )


def _checkpoint_directory(configuration: Configuration) -> str | None:
    """Where checkpoint files go; None keeps checkpoints in the driver's memory, even if a directory is set."""
    directory = configuration.get(options.CHECKPOINT_DIRECTORY)
    if directory is None and zookeeper_settings(configuration) is not None:
        directory = configuration.get(high_availability_options.STORAGE_DIRECTORY)
    storage = configuration.get(options.CHECKPOINT_STORAGE)
    if storage is None:
        storage = _OLDER_BACKENDS.get(configuration.get(options.BACKEND).lower(), ("", None))[1]
    if storage is StorageKind.JOBMANAGER:
        return None
    if storage is StorageKind.FILESYSTEM and directory is None:
        raise ConfigurationError(
            f"Checkpoint storage is 'filesystem' and no directory is set; set '{options.CHECKPOINT_DIRECTORY.key}' "
            f"to a path or URI that driver and executors can reach"
        )
    return directory


def _exponential_delay(configuration: Configuration) -> ExponentialDelaySettings:
    get = configuration.get
    initial, longest = get(options.EXPONENTIAL_INITIAL), get(options.EXPONENTIAL_MAX)
    multiplier = get(options.EXPONENTIAL_MULTIPLIER)
    if initial > longest:
        raise ConfigurationError(
            f"The option '{options.EXPONENTIAL_INITIAL.key}' is {initial} ms; expected at most "
            f"'{options.EXPONENTIAL_MAX.key}', which is {longest} ms"
        )
    if not multiplier > 1:
        raise ConfigurationError(
            f"The option '{options.EXPONENTIAL_MULTIPLIER.key}' is '{multiplier}'; expected a number above 1"
        )
    return ExponentialDelaySettings(
        initial,
        longest,
        multiplier,
        get(options.EXPONENTIAL_RESET),
        get(options.EXPONENTIAL_JITTER),
        get(options.EXPONENTIAL_ATTEMPTS),
    )
