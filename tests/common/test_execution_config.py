"""``env.get_config()``: PyFlink's names and defaults, as a view of the environment's configuration."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.common import Configuration, ExecutionConfig
from holdfast.common.settings_parser import parse_settings
from holdfast.datastream import StreamExecutionEnvironment
from holdfast.errors import HoldfastError


def environment(**settings: Any) -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment(Configuration.from_dict(settings))


#: What PyFlink 2.3.0 tells of an environment where nothing is set; -1 stands for the parallelism of the host.
DEFAULTS = {
    "get_parallelism": -1,
    "get_max_parallelism": -1,
    "get_auto_watermark_interval": 200,
    "get_latency_tracking_interval": 0,
    "get_task_cancellation_interval": 30_000,
    "get_task_cancellation_timeout": 180_000,
    "get_global_job_parameters": {},
    "is_closure_cleaner_enabled": True,
    "is_object_reuse_enabled": False,
    "is_use_snapshot_compression": False,
    "has_auto_generated_uids_enabled": True,
    "has_generic_types_disabled": False,
    "is_force_kryo_enabled": False,
    "is_force_avro_enabled": False,
    "get_default_kryo_serializer_classes": {},
    "get_registered_kryo_types": [],
    "get_registered_pojo_types": [],
}


@pytest.mark.parametrize(("getter", "expected"), DEFAULTS.items())
def test_defaults(getter: str, expected: Any) -> None:
    assert getattr(environment().get_config(), getter)() == expected


SETTERS: list[tuple[str, tuple[Any, ...], str, Any, dict[str, str]]] = [
    ("set_parallelism", (8,), "get_parallelism", 8, {"parallelism.default": "8"}),
    ("set_max_parallelism", (12,), "get_max_parallelism", 12, {"pipeline.max-parallelism": "12"}),
    (
        "set_auto_watermark_interval",
        (1_000,),
        "get_auto_watermark_interval",
        1_000,
        {"pipeline.auto-watermark-interval": "1 s"},
    ),
    ("set_auto_watermark_interval", (0,), "get_auto_watermark_interval", 0, {"pipeline.auto-watermark-interval": "0"}),
    ("disable_closure_cleaner", (), "is_closure_cleaner_enabled", False, {"pipeline.closure-cleaner-level": "NONE"}),
    ("enable_object_reuse", (), "is_object_reuse_enabled", True, {"pipeline.object-reuse": "true"}),
    (
        "disable_auto_generated_uids",
        (),
        "has_auto_generated_uids_enabled",
        False,
        {"pipeline.auto-generate-uids": "false"},
    ),
    ("disable_generic_types", (), "has_generic_types_disabled", True, {"pipeline.generic-types": "false"}),
    ("enable_force_kryo", (), "is_force_kryo_enabled", True, {"pipeline.force-kryo": "true"}),
    ("enable_force_avro", (), "is_force_avro_enabled", True, {"pipeline.force-avro": "true"}),
    ("set_latency_tracking_interval", (5,), "get_latency_tracking_interval", 5, {"metrics.latency.interval": "5 ms"}),
    ("set_latency_tracking_interval", (-5,), "get_latency_tracking_interval", 0, {"metrics.latency.interval": "0"}),
    ("set_task_cancellation_interval", (7,), "get_task_cancellation_interval", 7, {"task.cancellation.interval": "7"}),
    ("set_task_cancellation_timeout", (0,), "get_task_cancellation_timeout", 0, {"task.cancellation.timeout": "0"}),
    (
        "set_use_snapshot_compression",
        (True,),
        "is_use_snapshot_compression",
        True,
        {"execution.checkpointing.snapshot-compression": "true"},
    ),
    (
        "set_global_job_parameters",
        ({"a": 1, "b": "x:y,z"},),
        "get_global_job_parameters",
        {"a": "1", "b": "x:y,z"},
        {"pipeline.global-job-parameters": "{a: 1, b: 'x:y,z'}"},
    ),
]


@pytest.mark.parametrize(("setter", "given", "getter", "expected", "keys"), SETTERS)
def test_setters_and_keys_say_the_same(
    setter: str, given: tuple[Any, ...], getter: str, expected: Any, keys: dict[str, str]
) -> None:
    env = environment()
    config = env.get_config()
    assert getattr(config, setter)(*given) is config
    assert getattr(env.get_config(), getter)() == expected
    assert getattr(environment(**keys).get_config(), getter)() == expected
    parse_settings(env.get_configuration())


@pytest.mark.parametrize("switch", ["closure_cleaner", "object_reuse", "force_kryo", "force_avro"])
def test_switches_can_be_put_back(switch: str) -> None:
    config = environment().get_config()
    assert getattr(getattr(config, f"enable_{switch}")(), f"is_{switch}_enabled")()
    assert not getattr(getattr(config, f"disable_{switch}")(), f"is_{switch}_enabled")()
    assert config.disable_generic_types().enable_generic_types().has_generic_types_disabled() is False
    assert config.disable_auto_generated_uids().enable_auto_generated_uids().has_auto_generated_uids_enabled()


@pytest.mark.parametrize(
    ("setter", "value"),
    [
        ("set_parallelism", 0),
        ("set_parallelism", 40_000),
        ("set_max_parallelism", 0),
        ("set_max_parallelism", -1),
        ("set_auto_watermark_interval", -5),
        ("set_task_cancellation_timeout", -1),
    ],
)
def test_what_flink_refuses_is_refused(setter: str, value: int) -> None:
    with pytest.raises(HoldfastError, match="must be a whole number"):
        getattr(environment().get_config(), setter)(value)


def test_the_default_parallelism_is_taken_back_and_the_unknown_one_changes_nothing() -> None:
    config = environment().get_config().set_parallelism(3)
    assert config.set_parallelism(ExecutionConfig.PARALLELISM_UNKNOWN).get_parallelism() == 3
    assert config.set_parallelism(ExecutionConfig.PARALLELISM_DEFAULT).get_parallelism() == -1


def test_it_is_a_view_of_the_environment() -> None:
    env = environment()
    config = env.get_config()
    env.configure(Configuration.from_dict({"parallelism.default": 5}))
    assert config.get_parallelism() == env.get_parallelism() == 5
    stream = env.from_collection([1])
    assert stream.get_execution_config() == config and hash(config) == hash(env.get_config())
    stream.get_execution_config().set_parallelism(6)
    assert env.get_parallelism() == 6
    assert config != environment().get_config()


def test_parameters_with_keys_of_their_own() -> None:
    given = {"pipeline.global-job-parameters": "a:1,b:2", "pipeline.global-job-parameters.b": "3"}
    config = environment(**given).get_config()
    assert config.get_global_job_parameters() == {"a": "1", "b": "3"}
    assert config.set_global_job_parameters({"c": None}).get_global_job_parameters() == {"c": "None"}


def test_what_has_no_effect_says_why(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO"):
        environment().get_config().enable_object_reuse()
    assert "pipeline.object-reuse has no effect: rows pass from function to function as they are" in caplog.text
