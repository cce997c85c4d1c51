"""Whether and when a failed job starts again. Pure: times are milliseconds that the caller passes in."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass
from random import Random

from holdfast.errors import ConfigurationError
from holdfast.types.settings import (
    ExponentialDelaySettings,
    FailureRateSettings,
    FixedDelaySettings,
    NoRestartSettings,
    RestartSettings,
)


@dataclass(frozen=True)
class RestartDecision:
    """``reason`` says in words why the job starts again or does not."""

    restart: bool
    delay_ms: int
    reason: str


class RestartStrategy(ABC):
    """Decides whether a job starts again: asked once for every failure of it."""

    @abstractmethod
    def on_failure(self, now: int) -> RestartDecision: ...


class NoRestart(RestartStrategy):
    """The first failure ends the job."""

    def on_failure(self, now: int) -> RestartDecision:
        return RestartDecision(False, 0, "restarts are disabled (restart-strategy.type: none)")


class FixedDelayRestart(RestartStrategy):
    """Restarts so many times in the life of the job, each after the same delay."""

    def __init__(self, settings: FixedDelaySettings) -> None:
        self._settings = settings
        self._failures = 0

    def on_failure(self, now: int) -> RestartDecision:
        self._failures += 1
        allowed = self._settings.attempts
        if self._failures > allowed:
            return RestartDecision(False, 0, f"all {allowed} restarts of the fixed-delay strategy are used up")
        return RestartDecision(True, self._settings.delay_ms, f"restart {self._failures} of {allowed} (fixed delay)")


class FailureRateRestart(RestartStrategy):
    """Restarts unless there were more failures than allowed within the last interval."""

    def __init__(self, settings: FailureRateSettings) -> None:
        self._settings = settings
        self._failures: deque[int] = deque(maxlen=settings.max_failures + 1)

    def on_failure(self, now: int) -> RestartDecision:
        self._failures.append(now)
        allowed, interval = self._settings.max_failures, self._settings.interval_ms
        if len(self._failures) > allowed and now - self._failures[0] <= interval:
            return RestartDecision(
                False, 0, f"{len(self._failures)} failures within {interval} ms; {allowed} are allowed (failure rate)"
            )
        return RestartDecision(
            True, self._settings.delay_ms, f"no more than {allowed} failures within {interval} ms (failure rate)"
        )


class ExponentialDelayRestart(RestartStrategy):
    """Waits longer before each restart, and begins anew after a quiet time.

    Failures before the time of the restart that was decided last belong to the same restart.
    """

    def __init__(self, settings: ExponentialDelaySettings, random: Random) -> None:
        self._settings = settings
        self._random = random
        self._restarts = 0
        self._restart_at: int | None = None

    def on_failure(self, now: int) -> RestartDecision:
        restart_at = self._restart_at
        if restart_at is None or now >= restart_at:
            restart_at = self._restart_at = self._next_restart(now)
        limit = self._settings.attempts
        if limit is not None and self._restarts > limit:
            return RestartDecision(
                False, 0, f"{limit} restarts failed without a quiet time in between (exponential delay)"
            )
        reason = f"restart {self._restarts} since the last quiet time (exponential delay)"
        return RestartDecision(True, restart_at - now, reason)

    def _next_restart(self, now: int) -> int:
        if self._restart_at is not None and now - self._restart_at >= self._settings.reset_threshold_ms:
            self._restarts = 0
        delay = backoff(self._settings, self._restarts, self._random)
        self._restarts += 1
        return now + delay


def backoff(settings: ExponentialDelaySettings, number: int, random: Random) -> int:
    """The delay before restart ``number``, from 0, between the initial and the maximum one."""
    # The exponent is bounded first: a job that fails for days must not overflow a float.
    growth = math.log(settings.max_ms / settings.initial_ms, settings.multiplier)
    plain = min(settings.initial_ms * settings.multiplier ** min(number, math.ceil(growth)), float(settings.max_ms))
    jittered = plain * (1 + random.uniform(-settings.jitter, settings.jitter))
    return round(min(max(jittered, settings.initial_ms), settings.max_ms))


def strategy_for(settings: RestartSettings, random: Random | None = None) -> RestartStrategy:
    """A new strategy, with no failure counted."""
    match settings:
        case NoRestartSettings():
            return NoRestart()
        case FixedDelaySettings():
            return FixedDelayRestart(settings)
        case FailureRateSettings():
            return FailureRateRestart(settings)
        case ExponentialDelaySettings():
            return ExponentialDelayRestart(settings, random or Random())
    raise ConfigurationError(f"{settings!r} is no known restart strategy; see restart-strategy.type")
