"""Predicates for retry strategies: which results and errors of a call are a reason to try again."""

from __future__ import annotations

from typing import Any


def empty_result_predicate(result: list[Any]) -> bool:
    """No rows."""
    return not result


def has_exception_predicate(error: Exception | None) -> bool:
    """Any error."""
    return error is not None


def exception_type_predicate(error: Exception, expected_error_type: type[Exception]) -> bool:
    """An error of a class, which ``functools.partial(exception_type_predicate, expected_error_type=...)`` sets."""
    return isinstance(error, expected_error_type)
