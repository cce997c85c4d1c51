"""Errors of tasks, as the driver sees them again."""

from __future__ import annotations

import traceback

import pytest

from holdfast import errors
from holdfast.errors import EpochError, FunctionError, HoldfastError
from holdfast.spark.failures import failure_of, reporting_failures


def as_spark_tells_it(raised: BaseException) -> RuntimeError:
    """An error of the driver whose text holds the task's traceback among lines of Spark's own."""
    text = "".join(traceback.format_exception(raised))
    return RuntimeError(
        f"Job aborted due to stage failure: Task 1 in stage 3.0 failed 1 times:\n{text}\n\tat org.apache.spark.Executor"
    )


def raised_in_a_task(error: BaseException) -> BaseException:
    try:
        with reporting_failures():
            raise error
    except BaseException as raised:
        return raised


_KINDS = sorted(
    {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, HoldfastError)}
)


@pytest.mark.parametrize("kind", _KINDS)
def test_every_error_of_ours_comes_back_as_what_it_is(kind: str) -> None:
    cls = getattr(errors, kind)
    error = HoldfastError.__new__(cls)
    Exception.__init__(error, 'operator \'Average\': the row was {"a": "}"}; Grüße\nin two lines')
    found = failure_of(as_spark_tells_it(raised_in_a_task(error)))
    assert type(found) is cls
    assert str(found) == str(error)


def test_notes_become_part_of_the_message() -> None:
    error = errors.StateTypeError("a value of another type")
    error.add_note("in operator 'Average', subtask 1/2")
    found = failure_of(as_spark_tells_it(raised_in_a_task(error)))
    assert str(found) == "a value of another type; in operator 'Average', subtask 1/2"


def test_the_cause_is_sparks_own_error() -> None:
    outer = as_spark_tells_it(raised_in_a_task(FunctionError("x")))
    assert failure_of(outer).__cause__ is outer


def test_errors_of_others_pass_a_task_unchanged() -> None:
    error = KeyError("x")
    assert raised_in_a_task(error) is error
    assert not hasattr(error, "__notes__")


def test_an_error_without_a_mark_is_a_failed_epoch_with_its_first_line() -> None:
    found = failure_of(RuntimeError("\n  Job aborted: executor 3 lost\n more"))
    assert type(found) is EpochError
    assert "Job aborted: executor 3 lost" in str(found)
    assert "more" not in str(found)


def test_an_error_without_text_is_named_by_its_kind() -> None:
    assert "ConnectionResetError" in str(failure_of(ConnectionResetError()))


def test_our_own_errors_on_the_driver_stay_as_they_are() -> None:
    error = errors.TransactionError("lost")
    assert failure_of(error) is error


def test_an_unknown_kind_is_still_an_error_of_ours() -> None:
    found = failure_of(RuntimeError('holdfast-failure:{"kind":"FutureError","message":"from a newer worker"}'))
    assert type(found) is HoldfastError
    assert str(found) == "from a newer worker"


def test_errors_with_a_constructor_of_their_own_come_back() -> None:
    error = errors.CorruptFileError("chk-1/file", "the checksum differs")
    found = failure_of(as_spark_tells_it(raised_in_a_task(error)))
    assert type(found) is errors.CorruptFileError
    assert str(found) == str(error)
