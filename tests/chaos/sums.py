"""Sums over rounds of faults: who was killed how often, what became of the rows, and with which seeds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from holdfast.testing.chaos import ChaosResult, KillDriver, KillExecutor, KillWorker

#: A job's own processes. What is paused or stopped is not killed, and a service is not the job.
_KILLS = (KillWorker.name, KillExecutor.name, KillDriver.name)


def kills(results: Iterable[ChaosResult]) -> Counter[str]:
    """Killed processes of the jobs, by kind."""
    return Counter({name: count for name, count in _faults(results).items() if name in _KILLS})


def line_of(results: Sequence[ChaosResult]) -> str:
    """One line for all rounds."""
    killed, faults = kills(results), _faults(results)
    others = Counter({name: count for name, count in faults.items() if name not in _KILLS})
    failed = sum(not result.exactly_once for result in results)
    verdicts = [result.verdict for result in results]
    return ", ".join(
        (
            f"{len(results)} rounds, {failed} failed",
            f"{killed.total()} kills ({_listed(killed)})",
            f"other faults {_listed(others)}",
            f"lost {sum(verdict.lost for verdict in verdicts):,}",
            f"repeated {sum(verdict.repeated for verdict in verdicts):,}",
            f"wrong {sum(verdict.wrong for verdict in verdicts):,}",
            f"seeds {results[0].seed} to {results[-1].seed}" if results else "no seeds",
        )
    )


def _faults(results: Iterable[ChaosResult]) -> Counter[str]:
    return sum((Counter(result.faults) for result in results), Counter())


def _listed(counts: Counter[str]) -> str:
    return " ".join(f"{name}:{count}" for name, count in sorted(counts.items())) or "none"
