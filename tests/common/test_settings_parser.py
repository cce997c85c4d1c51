"""From options to settings, with Flink's defaults and checks."""

from __future__ import annotations

import dataclasses
import pickle

import pytest

from holdfast.common.configuration import Configuration
from holdfast.common.settings_parser import parse_settings
from holdfast.errors import ConfigurationError
from holdfast.types.settings import (
    BackendSettings,
    CheckpointMode,
    CheckpointSettings,
    EpochSettings,
    ExponentialDelaySettings,
    FailureRateSettings,
    FixedDelaySettings,
    LeaseSettings,
    NoRestartSettings,
    RecoverySettings,
    Retention,
    SparkSettings,
    StorageKind,
    ZooKeeperSettings,
)

PREFIX = "execution.checkpointing."


def parse(**values):
    return parse_settings(Configuration.from_dict(values))


def parse_keys(values):
    return parse_settings(Configuration.from_dict(values))


def test_defaults_are_those_of_the_settings():
    settings = parse()
    assert settings.checkpoint == CheckpointSettings()
    assert settings.restart == NoRestartSettings()
    assert settings.backend == BackendSettings()
    assert settings.epoch == EpochSettings()
    assert settings.recovery == RecoverySettings()
    assert (settings.parallelism, settings.max_parallelism, settings.job_id) == (None, None, None)
    assert settings.spark == SparkSettings()
    assert not settings.checkpoint.enabled
    assert settings.checkpoint.storage is StorageKind.JOBMANAGER


def test_flinks_defaults():
    checkpoint = parse().checkpoint
    assert (checkpoint.timeout_ms, checkpoint.min_pause_ms, checkpoint.max_concurrent) == (600_000, 0, 1)
    assert (checkpoint.tolerable_failures, checkpoint.num_retained, checkpoint.inline_threshold) == (0, 1, 20480)
    assert checkpoint.retention is Retention.NO_EXTERNALIZED_CHECKPOINTS
    assert checkpoint.incremental is True  # Holdfast's own


def test_all_settings_can_be_set():
    settings = parse_keys(
        {
            PREFIX + "interval": "10 s",
            PREFIX + "mode": "at_least_once",
            PREFIX + "timeout": "1 min",
            PREFIX + "min-pause": "5 s",
            PREFIX + "max-concurrent-checkpoints": "2",
            PREFIX + "tolerable-failed-checkpoints": "3",
            "holdfast.lease.heartbeat-interval": "2 s",
            "holdfast.lease.timeout": "7 s",
            PREFIX + "externalized-checkpoint-retention": "retain_on_cancellation",
            "state.checkpoints.num-retained": "4",
            "state.checkpoints.dir": "file:///c",
            "state.backend.incremental": "false",
            PREFIX + "data-inline-threshold": "1 kb",
            "holdfast.epoch.max-rows": "10",
            "holdfast.epoch.max-time": "1 s",
            "holdfast.epoch.min-interval": "30 ms",
            "holdfast.epoch.target-latency": "50 ms",
            "holdfast.epoch.idle-wait": "1 ms",
            "holdfast.epoch.max-idle-wait": "2 ms",
            "holdfast.stream.interval": "5 s",
            "holdfast.stream.available-now": "true",
            "holdfast.exchange.envelope-bytes": "1 mb",
            "holdfast.row.max-bytes": "2 mb",
            "holdfast.metrics.max-per-subtask": "50",
            "holdfast.state.local-dir": "/fast",
            "holdfast.job-id": "abc",
            "execution.savepoint.path": "file:///c/chk-1",
            "execution.state-recovery.ignore-unclaimed-state": "true",
            "holdfast.recovery.accept-repeated-output": "true",
            "holdfast.recovery.change-max-parallelism": "true",
            "parallelism.default": "4",
            "pipeline.max-parallelism": "64",
            "spark.master": "local[2]",
        }
    )
    assert settings.checkpoint == CheckpointSettings(
        interval_ms=10_000,
        mode=CheckpointMode.AT_LEAST_ONCE,
        timeout_ms=60_000,
        min_pause_ms=5_000,
        max_concurrent=2,
        tolerable_failures=3,
        retention=Retention.RETAIN_ON_CANCELLATION,
        num_retained=4,
        directory="file:///c",
        incremental=False,
        inline_threshold=1024,
        lease=LeaseSettings(2_000, 7_000),
    )
    assert settings.checkpoint.storage is StorageKind.FILESYSTEM
    assert settings.epoch == EpochSettings(10, 1_000, 30, 50, 1, 2, 1 << 20, 2 << 20, 5_000, True, 50)
    assert settings.backend.local_dir == "/fast"
    assert settings.recovery == RecoverySettings("file:///c/chk-1", True, True, True)
    assert (settings.parallelism, settings.max_parallelism, settings.job_id) == (4, 64, "abc")
    assert settings.spark.conf == {"spark.master": "local[2]"}


def test_settings_travel():
    settings = parse_keys({PREFIX + "interval": "10 s"})
    assert pickle.loads(pickle.dumps(settings)) == settings


def test_the_interval_is_raised_to_the_minimum_pause():
    checkpoint = parse_keys({PREFIX + "interval": "1 s", PREFIX + "min-pause": "5 s"}).checkpoint
    assert checkpoint.interval_ms == 5_000


@pytest.mark.parametrize(
    ("name", "backend", "directory"),
    [
        ("jobmanager", "heap", None),
        ("filesystem", "heap", "/c"),
        ("FileSystem", "heap", "/c"),
        ("hashmap", "heap", "/c"),
        ("heap", "heap", "/c"),
        ("rocksdb", "rocksdb", "/c"),
        ("LMDB", "lmdb", "/c"),
        ("third-party", "third-party", "/c"),
    ],
)
@pytest.mark.parametrize("key", ["state.backend", "state.backend.type"])
def test_backend_names(key, name, backend, directory):
    settings = parse_keys({key: name, "state.checkpoints.dir": "/c"})
    assert settings.backend.name == backend
    assert settings.checkpoint.directory == directory


def test_an_explicit_storage_wins_over_an_old_backend_name():
    values = {"state.backend": "jobmanager", "state.checkpoints.dir": "/c", "state.checkpoint-storage": "filesystem"}
    assert parse_keys(values).checkpoint.directory == "/c"
    values = {"state.checkpoints.dir": "/c", PREFIX + "storage": "jobmanager"}
    assert parse_keys(values).checkpoint.directory is None


def test_a_backend_gets_its_options_in_lower_case():
    settings = parse_keys({"State.Backend.LMDB.map-size": "5", "holdfast.state.local-dir": "/x", "other": "1"})
    assert settings.backend.options == {"state.backend.lmdb.map-size": "5", "holdfast.state.local-dir": "/x"}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, NoRestartSettings()),
        ({PREFIX + "interval": "1 s"}, ExponentialDelaySettings()),
        ({PREFIX + "interval": "1 s", "restart-strategy": "Off"}, NoRestartSettings()),
        ({"restart-strategy.type": "fixeddelay"}, FixedDelaySettings(1, 1_000)),
        (
            {
                "RESTART-STRATEGY": "FIXED-DELAY",
                "restart-strategy.fixed-delay.attempts": "3",
                "restart-strategy.fixed-delay.delay": "10 s",
            },
            FixedDelaySettings(3, 10_000),
        ),
        ({"restart-strategy": "failure-rate"}, FailureRateSettings(1, 60_000, 1_000)),
        (
            {"restart-strategy": "failure-rate", "restart-strategy.failure-rate.max-failures-per-interval": "5"},
            FailureRateSettings(5, 60_000, 1_000),
        ),
        (
            {
                "restart-strategy.type": "exponential-delay",
                "restart-strategy.exponential-delay.initial-backoff": "2 s",
                "restart-strategy.exponential-delay.attempts-before-reset-backoff": "7",
            },
            dataclasses.replace(ExponentialDelaySettings(), initial_ms=2_000, attempts=7),
        ),
    ],
)
def test_restart_strategies(values, expected):
    assert parse_keys(values).restart == expected


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        (
            {PREFIX + "mode": "twice"},
            r"'execution.checkpointing.mode' is 'twice'; expected one of EXACTLY_ONCE, AT_LEAST",
        ),
        ({PREFIX + "interval": "5 ms"}, r"interval' is '5 ms'; expected a value of at least 10 ms"),
        ({PREFIX + "timeout": "1"}, r"timeout' is '1'; expected a value of at least 10 ms"),
        ({PREFIX + "max-concurrent-checkpoints": "0"}, "expected a value of at least 1"),
        ({PREFIX + "tolerable-failed-checkpoints": "-1"}, "expected a value of at least 0"),
        (
            {"holdfast.lease.heartbeat-interval": "10 s", "holdfast.lease.timeout": "20 s"},
            r"lease\.timeout' is 20000 ms and .*interval' is 10000 ms; expected a timeout of more than two intervals",
        ),
        ({PREFIX + "storage": "filesystem"}, "no directory is set; set 'execution.checkpointing.dir'"),
        ({"state.backend": "filesystem"}, "no directory is set"),
        ({"restart-strategy": "sometimes"}, "The option 'restart-strategy' is 'sometimes'; expected one of none, off"),
        (
            {
                "restart-strategy": "exponential-delay",
                "restart-strategy.exponential-delay.initial-backoff": "2 min",
            },
            "initial-backoff' is 120000 ms; expected at most",
        ),
        (
            {
                "restart-strategy": "exponential-delay",
                "restart-strategy.exponential-delay.backoff-multiplier": "1",
            },
            "expected a number above 1",
        ),
        (
            {"restart-strategy": "exponential-delay", "restart-strategy.exponential-delay.jitter-factor": "2"},
            "expected a value of at most 1",
        ),
        ({"pipeline.max-parallelism": "0"}, "expected 1 to 32768, or -1"),
        ({"pipeline.max-parallelism": "40000"}, "at most 32768"),
        ({"parallelism.default": "0"}, "at least 1"),
        (
            {PREFIX + "intervall": "1 s"},
            "'execution.checkpointing.intervall' does not exist; the nearest one is .*interval'",
        ),
        ({"holdfast.epoch.rows": "1"}, "the nearest one is 'holdfast.epoch.max-rows'"),
        ({"restart-strategy.fixed-delay.attemps": "1"}, "the nearest one is 'restart-strategy.fixed-delay.attempts'"),
        ({"execution.state-recovery.claim": "x"}, "the nearest one is 'execution.state-recovery.claim-mode'"),
    ],
)
def test_errors_say_what_was_seen_and_what_is_allowed(values, problem):
    with pytest.raises(ConfigurationError, match=problem):
        parse_keys(values)


@pytest.mark.parametrize(
    "key",
    [
        "execution.checkpointing.unaligned.enabled",
        "execution.checkpointing.unaligned",
        "execution.checkpointing.unaligned.forced",
        "EXECUTION.CHECKPOINTING.UNALIGNED.FORCED",
        "execution.checkpointing.file-merging.enabled",
        "execution.checkpointing.savepoint-dir",
        "execution.checkpointing.write-buffer-size",
        "execution.checkpointing.checkpoints-after-tasks-finish",
        "taskmanager.memory.process.size",
    ],
)
def test_keys_of_flink_that_have_nothing_to_act_on_are_accepted(key):
    assert parse_keys({key: "true"}).checkpoint.max_concurrent == 1


ZOOKEEPER = {
    "high-availability.type": "zookeeper",
    "high-availability.zookeeper.quorum": "zk:2181",
    "holdfast.job-id": "j",
}


def test_high_availability_is_off_unless_asked_for():
    assert parse_keys({}).zookeeper is None
    assert parse_keys({"high-availability": "NONE"}).zookeeper is None


def test_high_availability_with_flinks_keys():
    assert parse_keys(ZOOKEEPER).zookeeper == ZooKeeperSettings("zk:2181")
    given = {
        "high-availability.zookeeper.path.root": "/flink",
        "high-availability.cluster-id": "/one",
        "high-availability.zookeeper.client.session-timeout": "10 s",
        "high-availability.zookeeper.client.connection-timeout": "2000",
        "high-availability.zookeeper.client.retry-wait": "1 s",
        "high-availability.zookeeper.client.max-retry-attempts": "3",
    }
    assert parse_keys(ZOOKEEPER | given).zookeeper == ZooKeeperSettings(
        "zk:2181", "/flink", "/one", 10_000, 2_000, 1_000
    )


def test_the_directory_of_high_availability_is_the_second_choice():
    storage = {"high-availability.storageDir": "/ha"}
    assert parse_keys(ZOOKEEPER | storage).checkpoint.directory == "/ha"
    assert parse_keys(ZOOKEEPER | storage | {PREFIX + "dir": "/chk"}).checkpoint.directory == "/chk"
    assert parse_keys(storage).checkpoint.directory is None


@pytest.mark.parametrize("value", ["kubernetes", "zk"])
def test_another_kind_of_high_availability_is_an_error(value):
    with pytest.raises(ConfigurationError, match=r"high-availability\.type.*zookeeper"):
        parse_keys({"high-availability.type": value})
