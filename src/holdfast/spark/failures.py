"""Errors on their way from a task to the driver.

What Holdfast raises in a task, a function's own error included, would be raised again if Spark tried the task again. So
it is no failure to Spark, which may be told to try several times: it travels through the exchange in the place of what
the task would have sent. The tasks behind it do nothing but pass it on, and the epoch is over at once.

What happens to the process of a task, or where PySpark cannot call it, Spark brings to the driver as text.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterable, Iterator

import msgspec
import pyarrow as pa

from holdfast import errors
from holdfast.errors import EpochError, HoldfastError, UnfitExecutorError
from holdfast.runtime.envelope import EXCHANGE_SCHEMA, FAILURE_EDGE, Header, pack, unpack_header
from holdfast.runtime.failure_report import FailureReport, report_of, with_report
from holdfast.runtime.failures import PassedOn
from holdfast.spark.python_report import report_in

#: What happened to the task. Lines before it say where the driver waited, "Caused by" behind it which socket broke.
_TASK_FAILURE = re.compile(r"most recent failure: (.+)")
_RAISED = re.compile(r"[A-Za-z_][\w.]*(Error|Exception|Exit|Interrupt|Warning)\b")
#: Where PySpark's worker fails before it calls our function: it cannot unpickle it.
_UNPICKLING = "in read_command\n"
#: It is another Python than the driver's, has no such daemon, or is not there, or not one that may be run.
_NOT_STARTED = re.compile(
    r"\[PYTHON_VERSION_MISMATCH\]|Error while finding module specification for|Cannot run program \".*\": error=(2|13),"
)
#: A value that the SQL of a query or of a DataFrame cannot compute with, or that it raises an error for.
_DATA_EXCEPTION = re.compile(r"\[[A-Z][A-Z_.]+\] .*SQLSTATE: (22\w{3}|P0001)")


class TaskFailure(msgspec.Struct, frozen=True):
    """One of our own errors, raised in a task."""

    kind: str
    message: str
    report: FailureReport

    @classmethod
    def of(cls, error: HoldfastError) -> TaskFailure:
        told = "; ".join([str(error), *getattr(error, "__notes__", [])])
        return cls(type(error).__name__, told, report_of(error))

    @classmethod
    def decode(cls, text: str) -> TaskFailure:
        return msgspec.json.decode(text.encode(), type=cls)

    def encode(self) -> str:
        return msgspec.json.encode(self).decode()

    def restored(self) -> HoldfastError:
        """The error as what it was."""
        kind = getattr(errors, self.kind, HoldfastError)
        error: HoldfastError = kind.__new__(kind)
        Exception.__init__(error, self.message)
        return with_report(error, self.report)


class FailedBefore(PassedOn):
    """A task of the level before has failed, for the reason that this is made with; raised in tasks."""


def sending_failures(sent: Iterable[pa.RecordBatch], values: list[int]) -> Iterator[pa.RecordBatch]:
    """In a task: what it sends, and behind that its failure, if it fails."""
    try:
        yield from sent
        return
    except FailedBefore as failed:
        failure = str(failed)
    except HoldfastError as error:
        failure = TaskFailure.of(error).encode()
    yield _to_every_slot(pack(Header(failure=failure)), values)


def _to_every_slot(payload: bytes, values: list[int]) -> pa.RecordBatch:
    constant = {"edge": FAILURE_EDGE, "channel": 0, "number": 0, "sender": 0, "sequence": 0, "payload": payload}
    return pa.RecordBatch.from_pylist([{"slot": value, **constant} for value in values], schema=EXCHANGE_SCHEMA)


def raise_failure(payloads: Iterable[bytes]) -> None:
    """On the driver: the failure among the messages of an epoch, if there is one."""
    for payload in payloads:
        failure = unpack_header(payload)[0].failure
        if failure:
            raise TaskFailure.decode(failure).restored()


def failure_of(error: BaseException) -> HoldfastError:
    """On the driver: the error that a failed epoch is reported with."""
    if isinstance(error, HoldfastError):
        return error
    if _UNPICKLING in str(error) or _NOT_STARTED.search(str(error)):
        failure = _not_taken_up(str(error))
    else:
        failure = EpochError(f"The epoch's Spark job failed: {gist(str(error)) or type(error).__name__}")
    return with_report(failure, report_in(str(error)) or _report_without_python(failure, error))


def _report_without_python(failure: HoldfastError, error: BaseException) -> FailureReport:
    """What the program's rows did, where Spark's SQL says that it was they; else nothing that the program did."""
    found = _DATA_EXCEPTION.search(str(error))
    return FailureReport(
        kind=type(failure).__name__,
        message=str(failure) if found is None else found[0],
        full_trace="".join(traceback.format_exception(error)),
        of_program=found is not None,
    )


def _not_taken_up(text: str) -> HoldfastError:
    """The executor has no Python that can run the program."""
    told = [line.strip() for line in text.splitlines() if _NOT_STARTED.search(line)]
    return UnfitExecutorError(
        f"Python tasks cannot begin on the executors: {told[0][:500] if told else _python_gist(text)}. Executors need "
        "the Python version of the driver, Holdfast and the packages of the program. Name a Python that has them in "
        "spark.pyspark.python (PYSPARK_PYTHON), or send one along with --archives."
    )


def _python_gist(text: str) -> str:
    """The exception that Python's own report ends with; the JVM's stack comes after it."""
    raised = [line for line in map(str.strip, text.splitlines()) if _RAISED.match(line)]
    return raised[-1][:500] if raised else ""


def gist(text: str) -> str:
    """The one line of Spark's report that says most to a person."""
    failed_task = _TASK_FAILURE.search(text)
    if failed_task is not None:
        return failed_task[1][:500]
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("at ")]
    if "Traceback (most recent call last):" in text and _python_gist(text):
        return _python_gist(text)
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    told = [line for line in lines if "Job aborted" in line or "Exception: " in line]
    return next(iter(causes[-1:] or told[:1] or lines[:1]), "")[:500]
