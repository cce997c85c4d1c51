"""Errors on their way from a task to the driver.

Spark brings a failed task's error to the driver as text. What Holdfast must know of it travels in one marked line of
JSON at the end of that text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from holdfast import errors
from holdfast.errors import EpochError, HoldfastError

_MARK = "holdfast-failure:"
_PATTERN = re.compile(re.escape(_MARK) + r"(\{.*?\})$", re.MULTILINE)
#: What happened to the task. Lines before it say where the driver waited, "Caused by" behind it which socket broke.
_TASK_FAILURE = re.compile(r"most recent failure: (.+)")


class TaskFailure(msgspec.Struct, frozen=True):
    """One of our own errors, raised in a task."""

    kind: str
    message: str


@contextmanager
def reporting_failures() -> Iterator[None]:
    """In a task: mark our own errors, so that the driver can raise them again as what they are."""
    try:
        yield
    except HoldfastError as error:
        message = "; ".join([str(error), *getattr(error, "__notes__", [])])
        line = msgspec.json.encode(TaskFailure(type(error).__name__, message)).decode()
        error.add_note(f"{_MARK}{line}")
        raise


def failure_of(error: BaseException) -> HoldfastError:
    """On the driver: the error that a failed epoch is reported with."""
    if isinstance(error, HoldfastError):
        return error
    found = _PATTERN.findall(str(error))
    if found:
        failure = msgspec.json.decode(found[-1].encode(), type=TaskFailure)
        kind = getattr(errors, failure.kind, HoldfastError)
        restored: HoldfastError = HoldfastError.__new__(kind)
        Exception.__init__(restored, failure.message)
        restored.__cause__ = error
        return restored
    lost = EpochError(f"The epoch's Spark job failed: {_gist(str(error)) or type(error).__name__}")
    lost.__cause__ = error
    return lost


def _gist(text: str) -> str:
    """The one line of Spark's report that says most to a person."""
    failed_task = _TASK_FAILURE.search(text)
    if failed_task is not None:
        return failed_task[1][:500]
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("at ")]
    if "Traceback (most recent call last):" in text:
        # Python's own report ends with the exception; the JVM's stack comes after it.
        raised = [
            line for line in lines if re.match(r"[A-Za-z_][\w.]*(Error|Exception|Exit|Interrupt|Warning)\b", line)
        ]
        if raised:
            return raised[-1][:500]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    told = [line for line in lines if "Job aborted" in line or "Exception: " in line]
    return next(iter(causes[-1:] or told[:1] or lines[:1]), "")[:500]
