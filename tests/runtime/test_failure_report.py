"""What is known of a failure where it is raised, and what of it is shown."""

from __future__ import annotations

import json
import socket
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from holdfast.connectors.formats.json_rows import _check_complete
from holdfast.connectors.sql.address import DatabaseAddress
from holdfast.errors import (
    EpochError,
    FunctionError,
    HoldfastError,
    NullKeyError,
    SourceError,
    SourceUnreachableError,
    StateTypeError,
    StorageError,
    StoreVersionError,
    TransactionError,
    UnfitFileError,
)
from holdfast.runtime.failure_report import FailureReport, Place, TaskTraceback, report_of, show_trace, with_report
from holdfast.runtime.failures import function_failure
from holdfast.runtime.yielded import as_returned
from holdfast.storage.local import LocalStorage

FILE = __file__


def raised_by(program: Callable[[], Any]) -> HoldfastError:
    """As an operator reports what a function raised."""
    try:
        # A frame of Holdfast's own is around the program, and one between its frames.
        as_returned(program)()
    except HoldfastError as error:
        return error
    except BaseException as error:
        return function_failure(f"{type(error).__name__}: {error}", error).at(operator="'a', subtask 1/2", row="7")
    raise AssertionError("the program did not raise")


def divide(by: int = 0) -> float:
    return 1 / by


def called_by_holdfast() -> Any:
    return as_returned(divide)()


def reads_json() -> Any:
    return json.loads("{")


def connects() -> None:
    raise ConnectionRefusedError("nobody listens")


def wraps(cause: Callable[[], Any]) -> Callable[[], None]:
    def program() -> None:
        try:
            cause()
        except Exception as error:
            raise LookupError("no price") from error

    return program


def test_the_error_is_that_of_the_program_at_its_innermost_line() -> None:
    report = report_of(raised_by(called_by_holdfast))
    assert (report.kind, report.message) == ("ZeroDivisionError", "division by zero")
    assert report.operator == "'a', subtask 1/2"
    assert report.place is not None
    assert (report.place.file, report.place.function) == (FILE, "divide")
    assert report.place.line == divide.__code__.co_firstlineno + 1
    assert report.error == "ZeroDivisionError: division by zero"


def test_the_trace_has_the_frames_of_the_program_alone_unless_all_are_asked_for() -> None:
    report = report_of(raised_by(called_by_holdfast))
    lines = report.trace(full=False).splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    places = [line.rpartition(", in ")[2] for line in lines if line.startswith(f'  File "{FILE}"')]
    assert places == ["raised_by", "called_by_holdfast", "divide"]
    assert lines[-1] == "ZeroDivisionError: division by zero"
    assert "yielded.py" not in report.trace(full=False)
    assert "yielded.py" in report.trace(full=True) and "FunctionError" in report.trace(full=True)


def test_what_the_program_called_stays_and_the_line_is_its_own() -> None:
    report = report_of(raised_by(reads_json))
    assert report.place is not None and report.place.function == "reads_json"
    assert "json/decoder.py" in report.program_trace


def arrow_refuses() -> pa.Array:
    return pa.array(["x"], pa.int32())


def test_a_line_of_a_compiled_library_is_none_of_the_program() -> None:
    """Cython names its sources without a folder, as scripts are that were started in theirs."""
    report = report_of(raised_by(arrow_refuses))
    assert report.place is not None
    assert (report.place.file, report.place.function) == (FILE, "arrow_refuses")
    assert ".pxi" in report.program_trace


def test_what_holdfast_raises_by_itself_is_at_no_line_of_a_library() -> None:
    @contextmanager
    def told() -> Iterator[None]:
        try:
            yield
        except LookupError as error:
            raise UnfitFileError("line 3") from error

    with pytest.raises(UnfitFileError) as raised, told():
        raise LookupError
    inner = raised.value.__traceback__
    assert inner is not None and inner.tb_next is not None
    # From the standard library on, as where Holdfast's own frames are around it.
    error = raised.value.with_traceback(inner.tb_next)
    assert inner.tb_next.tb_frame.f_code.co_filename.endswith("contextlib.py")
    error.__traceback__.tb_next = None  # type: ignore[union-attr]
    assert report_of(error).place is None


def test_causes_are_shown_without_internal_frames_too() -> None:
    report = report_of(raised_by(wraps(called_by_holdfast)))
    assert report.kind == "LookupError"
    assert "ZeroDivisionError: division by zero" in report.program_trace
    assert "direct cause" in report.program_trace and "yielded.py" not in report.program_trace


@pytest.mark.parametrize(
    ("program", "of_program"),
    [
        (divide, True),
        (reads_json, True),
        (wraps(divide), True),
        (lambda: Path("/no/such/file").read_text(), True),
        (connects, True),
        (wraps(connects), True),
        (lambda: (_ for _ in ()).throw(MemoryError()), True),
    ],
)
def test_whatever_a_line_of_the_program_raises_is_its_own(program: Callable[[], Any], of_program: bool) -> None:
    assert report_of(raised_by(program)).of_program is of_program


def without_the_program(call: Callable[[], Any]) -> FunctionError:
    """What a call raises, as if none of the program's lines had led to it."""
    try:
        call()
    except Exception as error:
        inner = error.__traceback__
        while inner is not None and inner.tb_frame.f_code.co_filename == FILE:
            inner = inner.tb_next
        return function_failure(str(error), error.with_traceback(inner))  # type: ignore[return-value]
    raise AssertionError("the call did not raise")


def refused_connection() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        socket.create_connection(unused.getsockname())


@pytest.mark.parametrize(
    ("call", "of_program"),
    [
        (lambda: DatabaseAddress.parse(None), True),  # type: ignore[arg-type]
        (lambda: _check_complete([b"{}"], ["price"]), True),
        (refused_connection, False),
        (lambda: LocalStorage("/no/such/directory").read("file", 0, 1), False),
    ],
)
def test_without_a_line_of_the_program_it_is_what_is_away_that_passes(
    call: Callable[[], Any], of_program: bool
) -> None:
    report = report_of(without_the_program(call))
    assert report.place is None or report.place.file != FILE
    assert report.of_program is of_program


@pytest.mark.parametrize(
    ("error", "of_program"),
    [
        (NullKeyError("no key"), True),
        (StateTypeError("a text"), True),
        (UnfitFileError("line 3"), True),
        (SourceError("offset 3"), True),
        (EpochError("a worker was lost"), False),
        (SourceUnreachableError("no broker"), False),
        (StorageError("no bucket"), False),
        (StoreVersionError("at epoch 3"), False),
        (TransactionError("no database"), False),
    ],
)
def test_errors_of_ours(error: HoldfastError, of_program: bool) -> None:
    report = report_of(error.at(row="7", key="key 3", operator="operator 'a', subtask 1/2"))
    assert report.of_program is of_program
    # Which row it was is no part of what went wrong.
    assert report.message == error.args[0]
    assert report.place is None and report.program_trace == ""


def test_a_report_travels() -> None:
    report = report_of(raised_by(divide))
    assert msgspec.json.decode(msgspec.json.encode(report), type=FailureReport) == report


def test_the_place_is_the_same_on_every_executor() -> None:
    first, second = Place("/tmp/a/prog.py", 3, "f"), Place("/home/b/prog.py", 3, "f")
    assert first.stable == second.stable and str(first) == "/tmp/a/prog.py, line 3, in f"


def test_an_error_from_another_process_prints_the_program_and_nothing_of_its_way() -> None:
    came = with_report(FunctionError("told"), report_of(raised_by(divide)))
    try:
        raise came
    except HoldfastError as error:
        show_trace(error, full=False)
    assert isinstance(came.__cause__, TaskTraceback)
    printed = "".join(traceback.format_exception(came))
    assert "in divide" in printed and "ZeroDivisionError: division by zero" in printed
    assert "raise came" not in printed
    show_trace(came, full=True)
    assert "yielded.py" in "".join(traceback.format_exception(came))


def test_an_error_of_this_process_stays_as_it_is() -> None:
    failure = raised_by(divide)
    show_trace(failure, full=False)
    assert isinstance(failure.__cause__, ZeroDivisionError) and failure.__cause__.__traceback__ is not None
