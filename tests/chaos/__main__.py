"""Jobs are disturbed at moments that are drawn from a seed, for a given time, so many rounds, or until so many of their
processes were killed. A table and a line of sums tell what it came to.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from holdfast.testing.chaos import ChaosResult, table_of
from tests.chaos.scenarios import LARGE, SCENARIOS, Round, Scenario
from tests.chaos.sums import kills, line_of
from tests.kit.unavailable import Unavailable


@dataclass(frozen=True)
class Bound:
    """How long rounds go on: so many rounds, else so many kills, else so many seconds from now."""

    seconds: float
    rounds: int | None = None
    kills: int | None = None
    _began: float = field(default_factory=time.monotonic)

    def reached(self, results: Sequence[ChaosResult], scenarios: int) -> bool:
        """Jobs of which a whole turn killed nobody will not get to a number of kills."""
        if self.rounds is not None:
            return len(results) >= self.rounds
        if self.kills is None:
            return time.monotonic() >= self._began + self.seconds
        in_vain = len(results) >= scenarios and kills(results[-scenarios:]).total() == 0
        return in_vain or kills(results).total() >= self.kills

    def kept(self, results: Sequence[ChaosResult]) -> bool:
        """There was a round, and as many kills as were asked for. Anything less has shown nothing."""
        return bool(results) and kills(results).total() >= (self.kills or 0)


def main(arguments: list[str] | None = None) -> int:
    """The exit code: 0 when in every round every row came out once."""
    options = _parser().parse_args(arguments)
    seed = random.SystemRandom().randrange(1_000_000) if options.seed is None else options.seed
    chosen = options.scenario or list(SCENARIOS)
    every = {**SCENARIOS, **LARGE}
    print(f"seed {seed}: {', '.join(chosen)}", flush=True)
    bound = Bound(options.seconds, options.rounds, options.kills)
    named = disturb({name: every[name] for name in chosen}, seed, bound, options.keep)
    results = [result for _, result in named]
    Console(width=140).print(table_of(results))
    for name, failed in named:
        if not failed.exactly_once:
            print(f"Repeat it with: make chaos SCENARIO={name} SEED={failed.seed} ROUNDS=1\n{failed.error or ''}")
    print(line_of(results), flush=True)
    return 0 if bound.kept(results) and all(result.exactly_once for result in results) else 1


def disturb(scenarios: Mapping[str, Scenario], seed: int, bound: Bound, keep: bool) -> list[tuple[str, ChaosResult]]:
    """Rounds of all scenarios in turn, each with the next seed, until the bound is reached."""
    results: list[tuple[str, ChaosResult]] = []
    with ExitStack() as services:
        ready = _ready(scenarios, services)
        while ready and not bound.reached([result for _, result in results], len(ready)):
            name = list(ready)[len(results) % len(ready)]
            result = _round(ready[name], seed + len(results), keep)
            print(result, flush=True)
            results.append((name, result))
    return results


def _ready(scenarios: Mapping[str, Scenario], services: ExitStack) -> dict[str, Round]:
    found = {}
    for name, scenario in scenarios.items():
        try:
            found[name] = services.enter_context(scenario())
        except Unavailable as reason:
            print(f"{name} is left out: {reason}", flush=True)
    return found


def _round(run: Round, seed: int, keep: bool) -> ChaosResult:
    """What a round that went wrong has written is kept anyhow."""
    directory = Path(tempfile.mkdtemp(prefix="holdfast-chaos-"))
    try:
        result = run(seed, directory)
        keep = keep or not result.exactly_once
        return result
    finally:
        if keep:
            print(f"Logs and files of this round are in {directory}", flush=True)
        else:
            shutil.rmtree(directory, ignore_errors=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0, help="no round begins later")
    parser.add_argument("--seed", type=int, help="of the first round; each has the next one (default: drawn)")
    parser.add_argument("--rounds", type=int, help="so many rounds, whatever the time")
    parser.add_argument("--kills", type=int, help="until so many workers, executors and drivers were killed")
    parser.add_argument("--keep", action="store_true", help="keep logs and files of all rounds")
    names = [*SCENARIOS, *LARGE]
    parser.add_argument("--scenario", action="append", choices=names, help="these alone; may be given several times")
    return parser


if __name__ == "__main__":
    # Ended from outside, it leaves no process and no file either.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(main())
