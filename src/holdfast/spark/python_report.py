"""A Python traceback inside of a text of Spark's: of a function that Spark itself calls, such as a UDF of a DataFrame
that the program reads.
"""

from __future__ import annotations

import re
from itertools import takewhile

from holdfast.runtime.failure_report import FailureReport, Place, is_internal, is_own

_BEGIN = "Traceback (most recent call last):"
_FRAME = re.compile(r'  File "([^"]+)", line (\d+), in (\S+)')
_RAISED = re.compile(r"(?P<kind>[A-Za-z_][\w.]*)(?:: (?P<message>.*))?")


def report_in(text: str) -> FailureReport | None:
    """What the innermost traceback of the text says; None where the program has no part in it."""
    lines = text.rpartition(_BEGIN)[2].splitlines()[1:]
    frames = _frames(list(takewhile(lambda line: line.startswith("  "), lines)))
    raised = _RAISED.match(next((line for line in lines if not line.startswith("  ")), ""))
    own = [place for place, _ in frames if is_own(place.file)]
    if _BEGIN not in text or raised is None or not own:
        return None
    shown = [line for place, told in frames if not is_internal(place.file) for line in told]
    kind, message = raised["kind"], (raised["message"] or "").rstrip()
    return FailureReport(
        kind=kind.rpartition(".")[2],
        message=message,
        place=own[-1],
        program_trace="\n".join([_BEGIN, *shown, raised[0].rstrip()]),
        full_trace=text,
        of_program=True,
    )


def _frames(lines: list[str]) -> list[tuple[Place, list[str]]]:
    """Each frame with the lines that tell of it."""
    frames: list[tuple[Place, list[str]]] = []
    for line in lines:
        begins = _FRAME.match(line)
        if begins is not None:
            frames.append((Place(begins[1], int(begins[2]), begins[3]), []))
        if frames:
            frames[-1][1].append(line)
    return frames
