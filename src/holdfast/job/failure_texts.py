"""Failures of attempts in words: what the log, REST and the end of a job say of them. The line of the program and its
error come first.
"""

from __future__ import annotations

from holdfast.checkpoint.restart import RestartDecision
from holdfast.errors import HoldfastError
from holdfast.job.same_failures import Repetition
from holdfast.runtime.failure_report import report_of


def failed_attempt(
    attempt: int, failure: HoldfastError, repetition: Repetition, then: RestartDecision, full: bool
) -> str:
    """The entry of the log. One that says the same as the entry before is a line."""
    report = report_of(failure)
    restarting = f"Restarting in {then.delay_ms} ms ({then.reason})."
    if repetition.in_a_row > 1:
        told = (report.error if report.place is not None else str(failure)).partition("\n")[0]
        return f"Attempt {attempt} failed as the one before, {repetition.in_a_row} times so far: {told}. {restarting}"
    trace = report.trace(full)
    if report.place is None or not trace:
        return f"Attempt {attempt} failed: {failure}. {restarting}" + (f"\n{trace.rstrip()}" if trace else "")
    return f"Attempt {attempt} failed at {report.place}: {report.error}\n{trace.rstrip()}\n{failure}. {restarting}"


def full_text(error: BaseException, full: bool) -> str:
    """The trace of a failure as far as it is to be seen, and the failure."""
    trace = report_of(error).trace(full).rstrip() if isinstance(error, HoldfastError) else ""
    name = f"{type(error).__module__}.{type(error).__qualname__}"
    return f"{trace}\n\n{name}: {error}\n" if trace else f"{name}: {error}\n"


def cannot_help(count: int) -> str:
    """Why a job ends of which the same failure came so often."""
    return (
        f"the program failed in the same way {count} times and no checkpoint completed in between, so that another "
        "attempt cannot help; to go on all the same, set restart-strategy.type, or holdfast.restart.same-failures to "
        "a higher number or to 0"
    )
