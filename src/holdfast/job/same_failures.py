"""Whether attempts of a job fail in the same way again and again. Pure: a report and a count of checkpoints in, a value
out.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from holdfast.runtime.failure_report import FailureReport

#: What differs from one attempt to the next in messages that say the same: addresses, ids and numbers.
_VARYING = re.compile(
    r"0x[0-9a-fA-F]+|\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b|\b(?=[a-f]*\d)[0-9a-f]{12,}\b"
    r"|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
)


def normalised(message: str) -> str:
    """A message without what differs each time."""
    return _VARYING.sub("#", message)


@dataclass(frozen=True)
class FailureFingerprint:
    """What makes two failures the same: the error, the operator, and the line of the program; the message where no line
    is known, since it may name another row each time.
    """

    kind: str
    message: str
    operator: str
    place: str

    @staticmethod
    def of(report: FailureReport) -> FailureFingerprint:
        place = "" if report.place is None else report.place.stable
        # The description of an operator, which stands in for an unknown id, names the subtask.
        operator = normalised(report.operator) if " " in report.operator else report.operator
        return FailureFingerprint(report.kind, "" if place else normalised(report.message), operator, place)


@dataclass(frozen=True)
class Repetition:
    """How often a failure has come since the last completed checkpoint, this time included."""

    count: int
    #: How many attempts in a row have failed with it, whatever completed in them.
    in_a_row: int
    #: It is not known to pass by itself, and has come as often as is allowed: another attempt cannot help.
    hopeless: bool


class SameFailures:
    """The failures of a job since its last completed checkpoint. ``limit`` None: none of them ends the job.

    A cluster that loses workers, or a storage that cannot be reached, may be back: such a failure is never hopeless.
    """

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._counts: Counter[FailureFingerprint] = Counter()
        self._last: FailureFingerprint | None = None
        self._in_a_row = 0
        self._completed = 0

    def on_failure(self, report: FailureReport, completed: int) -> Repetition:
        """An attempt failed when so many checkpoints had completed in this driver."""
        if completed != self._completed:
            self._counts.clear()
            self._completed = completed
        found = FailureFingerprint.of(report)
        self._counts[found] += 1
        count = self._counts[found]
        self._in_a_row = self._in_a_row + 1 if found == self._last else 1
        self._last = found
        hopeless = report.of_program and self._limit is not None and count >= self._limit
        return Repetition(count, self._in_a_row, hopeless)
