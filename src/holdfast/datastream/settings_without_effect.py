"""Settings of PyFlink's environment that have nothing to act on: they are kept for who asks, and a note is logged."""

from __future__ import annotations

import os
from typing import Any, ClassVar, Self

from holdfast.common.configuration import Configuration
from holdfast.common.option_types import BOOLEAN, DURATION, Option
from holdfast.coverage.answers import SaysWhatToUse, note_accepted

#: Options of Flink that are kept for who asks, and have nothing to act on.
_CHANGELOG: Option[bool | None] = Option("state.changelog.enabled", BOOLEAN, None, "")
_BUFFER_TIMEOUT: Option[int] = Option(
    "execution.buffer-timeout.interval", DURATION, 100, "", older=("execution.buffer-timeout",)
)
_BUFFER_TIMEOUT_ENABLED: Option[bool] = Option("execution.buffer-timeout.enabled", BOOLEAN, True, "")


class SettingsWithoutEffect(SaysWhatToUse):
    """The part of an environment that changes nothing."""

    _configuration: Configuration
    #: One for all environments, as in Flink.
    _default_local_parallelism: ClassVar[int] = os.cpu_count() or 1

    def set_default_local_parallelism(self, parallelism: int) -> None:
        note_accepted("StreamExecutionEnvironment.set_default_local_parallelism")
        SettingsWithoutEffect._default_local_parallelism = parallelism

    def get_default_local_parallelism(self) -> int:
        return SettingsWithoutEffect._default_local_parallelism

    def enable_changelog_state_backend(self, enabled: bool) -> Self:
        note_accepted("StreamExecutionEnvironment.enable_changelog_state_backend")
        self._configuration.set_boolean(_CHANGELOG.key, enabled)
        return self

    def is_changelog_state_backend_enabled(self) -> bool | None:
        """What was set; None where nothing was."""
        return self._configuration.get(_CHANGELOG)

    def set_buffer_timeout(self, timeout_millis: int) -> Self:
        note_accepted("StreamExecutionEnvironment.set_buffer_timeout")
        self._configuration.set_boolean(_BUFFER_TIMEOUT_ENABLED.key, timeout_millis >= 0)
        if timeout_millis >= 0:
            self._configuration.remove(_BUFFER_TIMEOUT)
            self._configuration.set_string(_BUFFER_TIMEOUT.key, f"{timeout_millis} ms")
        return self

    def get_buffer_timeout(self) -> int:
        """What was set or configured; -1 where it was turned off."""
        return self._configuration.get(_BUFFER_TIMEOUT) if self._configuration.get(_BUFFER_TIMEOUT_ENABLED) else -1

    def register_slot_sharing_group(self, slot_sharing_group: Any) -> Self:
        note_accepted("StreamExecutionEnvironment.register_slot_sharing_group")
        return self
