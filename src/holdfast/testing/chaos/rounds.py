"""A job is disturbed at moments that are drawn from a seed, ends, and is compared with its oracle."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from holdfast.errors import ConfigurationError
from holdfast.testing.chaos.faults import Fault, Seconds
from holdfast.testing.chaos.oracle import Oracle
from holdfast.testing.chaos.result import ChaosResult
from holdfast.testing.chaos.target import Program, Target

_LOOK_SECONDS = 0.2
_SHOWN_CHARACTERS = 2_000


@dataclass(frozen=True)
class Moments:
    """When faults come: so many of them, or for so many seconds, or whichever is over first.

    Kinds, order, pauses and what each fault leaves open are drawn from the seed; how far the job is at such a moment
    is not. Each fault waits until the job has published something since the one before, then for a time within
    ``pause``. The share ``hasty`` of them does not wait for progress: they hit the job while it recovers. A job that
    publishes nothing for ``patience`` seconds is stuck, and the round has failed.
    """

    seed: int
    faults: int | None = None
    seconds: float | None = None
    pause: Seconds = (0.2, 4.0)
    hasty: float = 0.25
    patience: float = 180.0

    def __post_init__(self) -> None:
        if self.faults is None and self.seconds is None:
            raise ConfigurationError("Moments need an end: give a number of faults, or seconds, or both.")


def run_chaos(
    program: Program, oracle: Oracle, faults: Sequence[Fault], moments: Moments, directory: Path
) -> ChaosResult:
    """Run the program to its end with faults in between. Logs of its drivers are left in the directory."""
    if not faults:
        raise ConfigurationError("A chaos run needs at least one kind of fault.")
    directory.mkdir(parents=True, exist_ok=True)
    return _Round(oracle, faults, moments).run(program, directory)


class _RoundFailed(Exception):
    """The job did not come to its end. The text becomes the error of the result."""


class _Round:
    def __init__(self, oracle: Oracle, faults: Sequence[Fault], moments: Moments) -> None:
        self._oracle = oracle
        self._moments = moments
        self._chosen = random.Random(moments.seed)
        self._kinds = self._order(faults)
        self._struck: Counter[str] = Counter()
        self._began = time.monotonic()

    def run(self, program: Program, directory: Path) -> ChaosResult:
        error = None
        with Target(program, directory) as target:
            try:
                self._disturb(target)
                self._await_end(target, program.ends)
            except _RoundFailed as failure:
                error = str(failure)
            restarts = target.restarts
        verdict = self._oracle.judge()
        seconds = time.monotonic() - self._began
        error = error or self._check()
        name = program.name or Path(program.script).stem
        return ChaosResult(name, self._moments.seed, seconds, dict(self._struck), restarts, verdict, error)

    def _order(self, faults: Sequence[Fault]) -> Iterator[Fault]:
        """Every kind once in an order that is drawn, and so on: a short round has its share of each."""
        while True:
            hand = list(faults)
            self._chosen.shuffle(hand)
            yield from hand

    def _disturb(self, target: Target) -> None:
        seen = self._oracle.published()
        while self._more_faults():
            if self._chosen.random() >= self._moments.hasty:
                self._await_progress(target, seen)
            time.sleep(self._chosen.uniform(*self._moments.pause))
            if self._ended(target):
                return
            seen = self._oracle.published()
            fault = next(self._kinds)
            if fault.strike(target, self._chosen):
                self._struck[fault.name] += 1

    def _more_faults(self) -> bool:
        moments, seconds = self._moments, time.monotonic() - self._began
        within = moments.seconds is None or seconds < moments.seconds
        return within and (moments.faults is None or self._struck.total() < moments.faults)

    def _await_progress(self, target: Target, seen: object) -> None:
        """Until the job has published something else than ``seen``, or ended."""
        deadline = time.monotonic() + self._moments.patience
        while not self._ended(target) and self._oracle.published() == seen:
            if time.monotonic() > deadline:
                raise _RoundFailed(f"nothing was published for {self._moments.patience:g} s; {_tail(target)}")
            time.sleep(_LOOK_SECONDS)

    def _await_end(self, target: Target, ends: bool) -> None:
        """Until the program ended or, where it never does, the output is complete."""
        while not self._ended(target) and (ends or self._oracle.judge().lost):
            self._await_progress(target, self._oracle.published())

    def _ended(self, target: Target) -> bool:
        code = target.driver.code
        if code:
            raise _RoundFailed(f"the program ended by itself, with {code}; {_tail(target)}")
        return code == 0

    def _check(self) -> str | None:
        if self._oracle.check is not None:
            try:
                self._oracle.check()
            except AssertionError as wrong:
                return str(wrong) or "the oracle's check failed"
        return None


def _tail(target: Target) -> str:
    return f"the end of {target.log}:\n{target.driver.output[-_SHOWN_CHARACTERS:]}"
