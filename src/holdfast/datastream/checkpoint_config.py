"""PyFlink's checkpoint settings, as a view of the environment's configuration."""

from __future__ import annotations

from holdfast.common.configuration import Configuration
from holdfast.common.option_types import parse_duration
from holdfast.common.settings_parser import checkpoint_settings
from holdfast.common.time import Duration
from holdfast.coverage.answers import SaysWhatToUse, note_accepted
from holdfast.datastream.checkpoint_storage import CheckpointStorage
from holdfast.datastream.checkpointing_mode import CheckpointingMode
from holdfast.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
from holdfast.errors import ProgramError
from holdfast.types.settings import CheckpointSettings

_PREFIX = "execution.checkpointing."


def _millis(value: int | Duration) -> str:
    return f"{value.to_millis() if isinstance(value, Duration) else int(value)} ms"


class CheckpointConfig(SaysWhatToUse):
    """Setters write configuration keys; getters read them with their defaults."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration

    def is_checkpointing_enabled(self) -> bool:
        return self._settings().interval_ms is not None

    def set_checkpointing_mode(self, checkpointing_mode: CheckpointingMode) -> CheckpointConfig:
        return self._set("mode", checkpointing_mode.name)

    def get_checkpointing_mode(self) -> CheckpointingMode:
        return CheckpointingMode[self._settings().mode]

    def set_checkpoint_interval(self, checkpoint_interval: int | Duration) -> CheckpointConfig:
        return self._set("interval", _millis(checkpoint_interval))

    def get_checkpoint_interval(self) -> int:
        """Milliseconds; -1 when checkpointing is off."""
        interval = self._settings().interval_ms
        return -1 if interval is None else interval

    def set_checkpoint_timeout(self, checkpoint_timeout: int | Duration) -> CheckpointConfig:
        return self._set("timeout", _millis(checkpoint_timeout))

    def get_checkpoint_timeout(self) -> int:
        return self._settings().timeout_ms

    def set_min_pause_between_checkpoints(self, min_pause_between_checkpoints: int | Duration) -> CheckpointConfig:
        return self._set("min-pause", _millis(min_pause_between_checkpoints))

    def get_min_pause_between_checkpoints(self) -> int:
        return self._settings().min_pause_ms

    def set_max_concurrent_checkpoints(self, max_concurrent_checkpoints: int) -> CheckpointConfig:
        return self._set("max-concurrent-checkpoints", str(max_concurrent_checkpoints))

    def get_max_concurrent_checkpoints(self) -> int:
        return self._settings().max_concurrent

    def set_tolerable_checkpoint_failure_number(self, tolerable_checkpoint_failure_number: int) -> CheckpointConfig:
        return self._set("tolerable-failed-checkpoints", str(tolerable_checkpoint_failure_number))

    def get_tolerable_checkpoint_failure_number(self) -> int:
        return self._settings().tolerable_failures

    def set_fail_on_checkpointing_errors(self, fail_on_checkpointing_errors: bool) -> CheckpointConfig:
        return self.set_tolerable_checkpoint_failure_number(0 if fail_on_checkpointing_errors else (1 << 31) - 1)

    def is_fail_on_checkpointing_errors(self) -> bool:
        return self.get_tolerable_checkpoint_failure_number() == 0

    def set_externalized_checkpoint_retention(
        self, retention_mode: ExternalizedCheckpointRetention
    ) -> CheckpointConfig:
        return self._set("externalized-checkpoint-retention", retention_mode.name)

    def get_externalized_checkpoint_retention(self) -> ExternalizedCheckpointRetention:
        return ExternalizedCheckpointRetention[self._settings().retention]

    def is_externalized_checkpoints_enabled(self) -> bool:
        return (
            self.get_externalized_checkpoint_retention()
            is not ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS
        )

    def set_checkpoint_storage_dir(self, checkpoint_path: str) -> CheckpointConfig:
        """The directory under which each job has a folder of its own; a path, or a URI of ``file:``,
        ``hdfs:``, ``s3:`` or ``gs:``.
        """
        return self._set("dir", checkpoint_path)

    def set_checkpoint_storage(self, storage: CheckpointStorage) -> CheckpointConfig:
        """Write what the storage says into the configuration. PyFlink has it up to its version 1."""
        if not isinstance(storage, CheckpointStorage):
            raise ProgramError(
                f"set_checkpoint_storage() takes a storage such as FileSystemCheckpointStorage(path); got {storage!r}. "
                "A directory alone is set with set_checkpoint_storage_dir(path)."
            )
        storage.apply_to(self._configuration)
        self._settings()
        return self

    # -- unaligned checkpoints, which are the same as aligned ones here

    def enable_unaligned_checkpoints(self, enabled: bool = True) -> CheckpointConfig:
        note_accepted("CheckpointConfig.enable_unaligned_checkpoints")
        return self._set("unaligned.enabled", str(enabled).lower())

    def disable_unaligned_checkpoints(self) -> CheckpointConfig:
        return self.enable_unaligned_checkpoints(False)

    def is_unaligned_checkpoints_enabled(self) -> bool:
        return self._kept("unaligned.enabled", "false") == "true"

    def set_force_unaligned_checkpoints(self, force_unaligned_checkpoints: bool = True) -> CheckpointConfig:
        note_accepted("CheckpointConfig.set_force_unaligned_checkpoints")
        return self._set("unaligned.forced", str(force_unaligned_checkpoints).lower())

    def is_force_unaligned_checkpoints(self) -> bool:
        return self._kept("unaligned.forced", "false") == "true"

    def set_aligned_checkpoint_timeout(self, alignment_timeout: Duration) -> CheckpointConfig:
        note_accepted("CheckpointConfig.set_aligned_checkpoint_timeout")
        return self._set("aligned-checkpoint-timeout", _millis(alignment_timeout))

    def get_aligned_checkpoint_timeout(self) -> Duration:
        return Duration.of_millis(parse_duration(self._kept("aligned-checkpoint-timeout", "0 ms")))

    def set_alignment_timeout(self, alignment_timeout: Duration) -> CheckpointConfig:
        return self.set_aligned_checkpoint_timeout(alignment_timeout)

    def get_alignment_timeout(self) -> Duration:
        return self.get_aligned_checkpoint_timeout()

    def _kept(self, key: str, default: str) -> str:
        return self._configuration.get_string(_PREFIX + key, default)

    def _set(self, key: str, value: str) -> CheckpointConfig:
        self._configuration.set_string(_PREFIX + key, value)
        self._settings()
        return self

    def _settings(self) -> CheckpointSettings:
        return checkpoint_settings(self._configuration)
