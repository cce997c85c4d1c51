"""Failures on their way through a task: what a user's function raised, as an error that says where, and failures of
tasks before it.
"""

from __future__ import annotations

from holdfast.errors import FunctionError


class PassedOn(Exception):
    """The failure of another task, of which this one has only to tell: whoever raised it knows what it is."""


def function_failure(message: str, error: BaseException) -> FunctionError:
    """The error to raise for what a function raised. It may be anything, SystemExit and KeyboardInterrupt too: a task
    that lets them pass ends its worker process, or fails, without a word of where.
    """
    failure = FunctionError(message)
    failure.__cause__ = error
    return failure
