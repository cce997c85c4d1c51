"""PyFlink's settings of how a program is executed, as a view of the environment's configuration."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, TypeVar

from holdfast.common import execution_options as keys
from holdfast.common import options
from holdfast.common.configuration import Configuration
from holdfast.common.option_types import Option
from holdfast.common.settings_parser import global_job_parameters, parse_settings
from holdfast.errors import ProgramError

logger = logging.getLogger(__name__)

T = TypeVar("T")

_MOST_SUBTASKS = 32_768
#: Flink's, which is told where none is set.
_WATERMARK_INTERVAL = 200


class ExecutionConfig:
    """Setters write configuration keys; getters read them with their defaults."""

    #: The parallelism that the Spark application has.
    PARALLELISM_DEFAULT = -1
    #: The parallelism that was set before.
    PARALLELISM_UNKNOWN = -2

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration

    # -- parallelism

    def set_parallelism(self, parallelism: int) -> ExecutionConfig:
        """Subtasks of operators that set none of their own."""
        if parallelism == self.PARALLELISM_DEFAULT:
            self._configuration.remove(options.PARALLELISM)
        elif parallelism != self.PARALLELISM_UNKNOWN:
            self._set(options.PARALLELISM, _subtasks(parallelism, "parallelism"))
        return self

    def get_parallelism(self) -> int:
        """The configured parallelism; -1 when Spark's own default is used."""
        return parse_settings(self._configuration).parallelism or self.PARALLELISM_DEFAULT

    def set_max_parallelism(self, max_parallelism: int) -> ExecutionConfig:
        """Key groups of every operator: the most subtasks that it can ever have."""
        return self._set(options.MAX_PARALLELISM, _subtasks(max_parallelism, "maximum parallelism"))

    def get_max_parallelism(self) -> int:
        return parse_settings(self._configuration).max_parallelism or -1

    # -- event time

    def set_auto_watermark_interval(self, interval: int) -> ExecutionConfig:
        """Milliseconds between two watermarks of a watermark strategy; with 0 there is only the last one. Where it is
        not set every row moves the watermark.
        """
        return self._set(keys.AUTO_WATERMARK_INTERVAL, f"{_millis(interval, 'auto-watermark interval')} ms")

    def get_auto_watermark_interval(self) -> int:
        interval = self._configuration.get(keys.AUTO_WATERMARK_INTERVAL)
        return _WATERMARK_INTERVAL if interval is None else interval

    # -- what functions are given

    def set_global_job_parameters(self, global_job_parameters_dict: Mapping[Any, Any]) -> ExecutionConfig:
        """What ``runtime_context.get_job_parameter(key, default)`` finds: these, and no others from before."""
        for key in self._configuration.key_set():
            if key.startswith(keys.GLOBAL_JOB_PARAMETERS.key + "."):
                self._configuration.remove_config(key)
        texts = {str(key): str(value) for key, value in global_job_parameters_dict.items()}
        return self._set(keys.GLOBAL_JOB_PARAMETERS, keys.GLOBAL_JOB_PARAMETERS.kind.show(texts))

    def get_global_job_parameters(self) -> dict[str, str]:
        return global_job_parameters(self._configuration)

    # -- what a program is held to

    def enable_auto_generated_uids(self) -> ExecutionConfig:
        return self._switch(keys.AUTO_GENERATED_UIDS, True)

    def disable_auto_generated_uids(self) -> ExecutionConfig:
        """A program with an operator that has no ``uid()`` is an error."""
        return self._switch(keys.AUTO_GENERATED_UIDS, False)

    def has_auto_generated_uids_enabled(self) -> bool:
        return self._configuration.get(keys.AUTO_GENERATED_UIDS)

    def enable_generic_types(self) -> ExecutionConfig:
        return self._switch(keys.GENERIC_TYPES, True)

    def disable_generic_types(self) -> ExecutionConfig:
        """A program with rows, keys or state that would be pickled is an error."""
        return self._switch(keys.GENERIC_TYPES, False)

    def has_generic_types_disabled(self) -> bool:
        return not self._configuration.get(keys.GENERIC_TYPES)

    # -- settings that are kept and told, and have nothing to act on

    def enable_closure_cleaner(self) -> ExecutionConfig:
        return self._without_effect(keys.CLOSURE_CLEANER, "RECURSIVE")

    def disable_closure_cleaner(self) -> ExecutionConfig:
        return self._without_effect(keys.CLOSURE_CLEANER, "NONE")

    def is_closure_cleaner_enabled(self) -> bool:
        return self._configuration.get(keys.CLOSURE_CLEANER) != "NONE"

    def enable_object_reuse(self) -> ExecutionConfig:
        return self._without_effect(keys.OBJECT_REUSE, "true")

    def disable_object_reuse(self) -> ExecutionConfig:
        return self._without_effect(keys.OBJECT_REUSE, "false")

    def is_object_reuse_enabled(self) -> bool:
        return self._configuration.get(keys.OBJECT_REUSE)

    def set_latency_tracking_interval(self, interval: int) -> ExecutionConfig:
        return self._without_effect(keys.LATENCY_INTERVAL, f"{max(0, int(interval))} ms")

    def get_latency_tracking_interval(self) -> int:
        return self._configuration.get(keys.LATENCY_INTERVAL)

    def set_task_cancellation_interval(self, interval: int) -> ExecutionConfig:
        return self._without_effect(keys.CANCELLATION_INTERVAL, str(int(interval)))

    def get_task_cancellation_interval(self) -> int:
        return self._configuration.get(keys.CANCELLATION_INTERVAL)

    def set_task_cancellation_timeout(self, timeout: int) -> ExecutionConfig:
        return self._without_effect(keys.CANCELLATION_TIMEOUT, str(_millis(timeout, "cancellation timeout")))

    def get_task_cancellation_timeout(self) -> int:
        return self._configuration.get(keys.CANCELLATION_TIMEOUT)

    def enable_force_kryo(self) -> ExecutionConfig:
        return self._without_effect(keys.FORCE_KRYO, "true")

    def disable_force_kryo(self) -> ExecutionConfig:
        return self._without_effect(keys.FORCE_KRYO, "false")

    def is_force_kryo_enabled(self) -> bool:
        return self._configuration.get(keys.FORCE_KRYO)

    def enable_force_avro(self) -> ExecutionConfig:
        return self._without_effect(keys.FORCE_AVRO, "true")

    def disable_force_avro(self) -> ExecutionConfig:
        return self._without_effect(keys.FORCE_AVRO, "false")

    def is_force_avro_enabled(self) -> bool:
        return self._configuration.get(keys.FORCE_AVRO)

    def set_use_snapshot_compression(self, use_snapshot_compression: bool) -> ExecutionConfig:
        return self._without_effect(keys.SNAPSHOT_COMPRESSION, str(bool(use_snapshot_compression)).lower())

    def is_use_snapshot_compression(self) -> bool:
        return self._configuration.get(keys.SNAPSHOT_COMPRESSION)

    def get_default_kryo_serializer_classes(self) -> dict[str, str]:
        """Always empty: no type here has a class of Java."""
        return {}

    def get_registered_kryo_types(self) -> list[str]:
        return []

    def get_registered_pojo_types(self) -> list[str]:
        return []

    def _switch(self, option: Option[bool], on: bool) -> ExecutionConfig:
        return self._set(option, option.kind.show(on))

    def _without_effect(self, option: Option[Any], text: str) -> ExecutionConfig:
        logger.info("The option %s has no effect: %s.", option.key, options.WITHOUT_EFFECT[option.key])
        return self._set(option, text)

    def _set(self, option: Option[Any], text: str) -> ExecutionConfig:
        self._configuration.set_option(option, text)
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExecutionConfig) and self._configuration == other._configuration

    def __hash__(self) -> int:
        return hash(self._configuration)


def _subtasks(value: int, what: str) -> str:
    if not isinstance(value, int) or not 1 <= value <= _MOST_SUBTASKS:
        raise ProgramError(f"The {what} must be a whole number from 1 to {_MOST_SUBTASKS}; got {value!r}.")
    return str(value)


def _millis(value: int, what: str) -> int:
    if not isinstance(value, int) or value < 0:
        raise ProgramError(f"The {what} must be a whole number of milliseconds, 0 or more; got {value!r}.")
    return value
