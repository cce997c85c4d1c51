"""What a user's function raised, as an error that says where."""

from __future__ import annotations

from holdfast.errors import FunctionError


def function_failure(message: str, error: BaseException) -> FunctionError:
    """The error to raise for what a function raised. It may be anything, SystemExit and KeyboardInterrupt too: a task
    that lets them pass ends its worker process, or fails, without a word of where.
    """
    failure = FunctionError(message)
    failure.__cause__ = error
    return failure
