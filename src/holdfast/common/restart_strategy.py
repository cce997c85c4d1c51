"""Restart strategies in code: values that stand for the ``restart-strategy.*`` options."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from holdfast.common import options
from holdfast.common.configuration import Configuration
from holdfast.common.option_types import Option
from holdfast.common.time import Duration, Time
from holdfast.coverage.answers import SaysWhatToUse
from holdfast.errors import ConfigurationError
from holdfast.types.settings import RestartKind

__all__ = ["RestartStrategies", "RestartStrategyConfiguration"]

#: Milliseconds, or any of the classes for a length of time.
TimeLike = int | timedelta | Duration | Time


@dataclass(frozen=True)
class RestartStrategyConfiguration:
    """A restart strategy with its parameters; ``values`` are option keys and texts."""

    description: str
    values: tuple[tuple[str, str], ...] = field(default=())

    def get_description(self) -> str:
        return self.description

    def apply_to(self, configuration: Configuration) -> None:
        """Make it the strategy of ``configuration``, in place of whatever was set there."""
        for option in options.ALL:
            if option.key.startswith("restart-strategy."):
                configuration.remove(option)
        for key, value in self.values:
            configuration.set_string(key, value)


class RestartStrategies(SaysWhatToUse):
    """PyFlink's factories of restart strategies, and the exponential delay, which PyFlink does not have."""

    @staticmethod
    def no_restart() -> RestartStrategyConfiguration:
        """The first failure ends the job."""
        return _strategy(RestartKind.NONE, "Restart deactivated.")

    @staticmethod
    def fall_back_restart() -> RestartStrategyConfiguration:
        """What the configuration file says, else the default."""
        return RestartStrategyConfiguration("Cluster level default restart strategy")

    @staticmethod
    def fixed_delay_restart(restart_attempts: int, delay_between_attempts: TimeLike) -> RestartStrategyConfiguration:
        """Restart so many times, each after the same delay."""
        delay = _text(delay_between_attempts)
        return _strategy(
            RestartKind.FIXED_DELAY,
            f"Restart with fixed delay ({delay}). #{restart_attempts} restart attempts.",
            (options.FIXED_DELAY_ATTEMPTS, str(restart_attempts)),
            (options.FIXED_DELAY_DELAY, delay),
        )

    @staticmethod
    def failure_rate_restart(
        failure_rate: int, failure_interval: TimeLike, delay_interval: TimeLike
    ) -> RestartStrategyConfiguration:
        """Restart unless there are more failures than ``failure_rate`` within the interval."""
        interval, delay = _text(failure_interval), _text(delay_interval)
        return _strategy(
            RestartKind.FAILURE_RATE,
            f"Failure rate restart with maximum of {failure_rate} failures within {interval} and delay {delay}.",
            (options.FAILURE_RATE_MAX, str(failure_rate)),
            (options.FAILURE_RATE_INTERVAL, interval),
            (options.FAILURE_RATE_DELAY, delay),
        )

    @staticmethod
    def exponential_delay_restart(
        initial_backoff: TimeLike = 1_000,
        max_backoff: TimeLike = 60_000,
        backoff_multiplier: float = 1.5,
        reset_backoff_threshold: TimeLike = 3_600_000,
        jitter_factor: float = 0.1,
    ) -> RestartStrategyConfiguration:
        """Wait longer before each restart, and begin anew after a quiet time."""
        initial, longest = _text(initial_backoff), _text(max_backoff)
        return _strategy(
            RestartKind.EXPONENTIAL_DELAY,
            f"Restart with exponential delay: from {initial} to {longest}, times {backoff_multiplier} each time.",
            (options.EXPONENTIAL_INITIAL, initial),
            (options.EXPONENTIAL_MAX, longest),
            (options.EXPONENTIAL_MULTIPLIER, str(backoff_multiplier)),
            (options.EXPONENTIAL_RESET, _text(reset_backoff_threshold)),
            (options.EXPONENTIAL_JITTER, str(jitter_factor)),
        )


def _strategy(
    kind: RestartKind, description: str, *parameters: tuple[Option[int] | Option[float], str]
) -> RestartStrategyConfiguration:
    for option, text in parameters:
        option.parse(text)
    values = tuple((option.key, text) for option, text in parameters)
    return RestartStrategyConfiguration(description, ((options.RESTART_STRATEGY.key, kind.value), *values))


def _text(length: TimeLike) -> str:
    if isinstance(length, timedelta):
        return f"{round(length.total_seconds() * 1_000)} ms"
    if isinstance(length, Duration):
        return f"{length.to_millis()} ms"
    if isinstance(length, Time):
        return f"{length.to_milliseconds()} ms"
    if isinstance(length, int) and not isinstance(length, bool):
        return f"{length} ms"
    raise ConfigurationError(
        f"{length!r} is not a length of time; use milliseconds, datetime.timedelta, Duration or Time"
    )
