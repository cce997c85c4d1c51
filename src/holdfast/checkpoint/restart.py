"""Whether and when a failed job starts again. Pure: times are milliseconds that the caller passes in."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from random import Random


@dataclass(frozen=True)
class RestartDecision:
    """``reason`` says in words why the job starts again or does not."""

    restart: bool
    delay_ms: int
    reason: str


class RestartStrategy(ABC):
    """Asked once for every failure of a job."""

    @abstractmethod
    def on_failure(self, now: int) -> RestartDecision: ...


class NoRestart(RestartStrategy):
    """The first failure ends the job."""

    def on_failure(self, now: int) -> RestartDecision:
        return RestartDecision(False, 0, "restarts are disabled (restart-strategy.type: none)")


class FixedDelayRestart(RestartStrategy):
    """Restarts ``attempts`` times in the life of the job, each after ``delay_ms``."""

    def __init__(self, attempts: int = 1, delay_ms: int = 1_000) -> None:
        self._attempts = attempts
        self._delay = delay_ms
        self._failures = 0

    def on_failure(self, now: int) -> RestartDecision:
        self._failures += 1
        if self._failures > self._attempts:
            return RestartDecision(False, 0, f"all {self._attempts} restarts of the fixed-delay strategy are used up")
        return RestartDecision(True, self._delay, f"restart {self._failures} of {self._attempts} (fixed delay)")


class FailureRateRestart(RestartStrategy):
    """Restarts unless there were more than ``max_failures`` within the last ``interval_ms``."""

    def __init__(self, max_failures: int = 1, interval_ms: int = 60_000, delay_ms: int = 1_000) -> None:
        self._max_failures = max_failures
        self._interval = interval_ms
        self._delay = delay_ms
        self._failures: deque[int] = deque(maxlen=max_failures + 1)

    def on_failure(self, now: int) -> RestartDecision:
        self._failures.append(now)
        too_many = len(self._failures) > self._max_failures and now - self._failures[0] <= self._interval
        if too_many:
            return RestartDecision(
                False, 0, f"{len(self._failures)} failures within {self._interval} ms; {self._max_failures} are allowed"
            )
        return RestartDecision(
            True, self._delay, f"no more than {self._max_failures} failures within {self._interval} ms (failure rate)"
        )


@dataclass(frozen=True)
class ExponentialDelay:
    """The parameters of ExponentialDelayRestart; ``attempts`` None is no limit."""

    initial_ms: int = 1_000
    max_ms: int = 60_000
    multiplier: float = 1.5
    reset_threshold_ms: int = 3_600_000
    jitter: float = 0.1
    attempts: int | None = None

    def delay(self, number: int, random: Callable[[float, float], float]) -> int:
        """The delay before restart ``number`` (from 0), with its jitter drawn from ``random(low, high)``."""
        # The exponent is bounded first: a job that fails for days must not overflow a float.
        enough = (
            math.ceil(math.log(self.max_ms / self.initial_ms, self.multiplier)) if self.max_ms > self.initial_ms else 0
        )
        plain = min(self.initial_ms * self.multiplier ** min(number, enough), float(self.max_ms))
        jittered = plain * (1 + random(-self.jitter, self.jitter))
        return round(min(max(jittered, self.initial_ms), self.max_ms))


class ExponentialDelayRestart(RestartStrategy):
    """Waits longer after each restart, and begins anew after a quiet time of ``reset_threshold_ms``.

    Failures before the time of the restart that was decided last belong to the same restart.
    """

    def __init__(self, parameters: ExponentialDelay | None = None, random: Random | None = None) -> None:
        self._parameters = parameters or ExponentialDelay()
        self._random = random or Random()
        self._restarts = 0
        self._restart_at: int | None = None

    def on_failure(self, now: int) -> RestartDecision:
        if self._restart_at is None or now >= self._restart_at:
            self._next_restart(now)
        limit = self._parameters.attempts
        if limit is not None and self._restarts > limit:
            return RestartDecision(
                False, 0, f"{limit} restarts failed without a quiet time in between (exponential delay)"
            )
        delay = (self._restart_at or now) - now
        return RestartDecision(True, delay, f"restart {self._restarts} since the last quiet time (exponential delay)")

    def _next_restart(self, now: int) -> None:
        if self._restart_at is not None and now - self._restart_at >= self._parameters.reset_threshold_ms:
            self._restarts = 0
        self._restart_at = now + self._parameters.delay(self._restarts, self._random.uniform)
        self._restarts += 1
