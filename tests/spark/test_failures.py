"""Errors of tasks, as the driver sees them again."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyspark
import pytest

from holdfast import errors
from holdfast.errors import EpochError, FunctionError, HoldfastError, UnfitExecutorError
from holdfast.runtime.envelope import FAILURE_EDGE, Header, pack, unpack_header
from holdfast.runtime.failure_report import FailureReport, Place, TaskTraceback, report_of, show_trace
from holdfast.spark.failures import FailedBefore, TaskFailure, failure_of, raise_failure, sending_failures

_KINDS = sorted(
    {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, HoldfastError)}
)


IN_A_UDF = f"""Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times, most recent failure: Lost task
An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "{pyspark.__path__[0]}/worker.py", line 1245, in main
    process()
  File "/app/prices.py", line 7, in price
    return rate(row) / row.total
           ~~~~~~~~~~^~~~~~~~~~~
  File "/app/prices.py", line 12, in rate
    RAISED
KIND
 SQLSTATE: 38000
\tat org.apache.spark.api.python.BasePythonRunner.run
"""


@pytest.mark.parametrize(
    "kind",
    [
        "ZeroDivisionError: division by zero",
        "shop.prices.NoPrice: none",
        "AssertionError",
        "requests.exceptions.ConnectionError: nobody answers",
        "OSError: [Errno 5]",
    ],
)
def test_a_function_that_spark_calls_is_the_program_too(kind: str) -> None:
    found = failure_of(RuntimeError(IN_A_UDF.replace("KIND", kind)))
    report = report_of(found)
    assert type(found) is EpochError
    assert report.place == Place("/app/prices.py", 12, "rate") and report.of_program
    lines = report.trace(full=False).splitlines()
    assert lines[0] == "Traceback (most recent call last):" and lines[-1] == kind
    assert lines[1] == '  File "/app/prices.py", line 7, in price'
    assert "worker.py" not in report.trace(full=False) and "org.apache" not in report.trace(full=False)
    assert "org.apache" in report.trace(full=True)


def test_a_line_of_a_compiled_library_in_a_udf_is_none_of_the_program() -> None:
    in_arrow = IN_A_UDF.replace("    RAISED", '    RAISED\n  File "pyarrow/array.pxi", line 370, in pyarrow.lib.array')
    assert report_of(failure_of(RuntimeError(in_arrow))).place == Place("/app/prices.py", 12, "rate")


def test_a_traceback_without_the_program_says_nothing_of_it() -> None:
    report = report_of(failure_of(RuntimeError(IN_A_UDF.replace("/app", pyspark.__path__[0]))))
    assert report.place is None and not report.program_trace and not report.of_program


def sent_by_a_task(error: BaseException) -> list[pa.RecordBatch]:
    def send() -> Iterator[pa.RecordBatch]:
        raise error
        yield

    return list(sending_failures(send(), [3, 5]))


def raised_again(error: BaseException) -> HoldfastError:
    """An error of a task, as the driver raises it."""
    (batch,) = sent_by_a_task(error)
    with pytest.raises(HoldfastError) as raised:
        raise_failure([batch.column("payload")[0].as_py()])
    return raised.value


@pytest.mark.parametrize("kind", _KINDS)
def test_every_error_of_ours_comes_back_as_what_it_is(kind: str) -> None:
    cls = getattr(errors, kind)
    error = cls.__new__(cls)
    Exception.__init__(error, 'operator \'Average\': the row was {"a": "}"}; Grüße\nin two lines')
    found = raised_again(error)
    assert type(found) is cls
    assert str(found) == str(error)


def test_notes_become_part_of_the_message() -> None:
    error = errors.StateTypeError("a value of another type")
    error.add_note("in operator 'Average', subtask 1/2")
    assert str(raised_again(error)) == "a value of another type; in operator 'Average', subtask 1/2"


def test_an_error_brings_what_is_known_of_it() -> None:
    error = FunctionError("x")
    error.__cause__ = ValueError("no")
    found = report_of(raised_again(error.at(operator_id="abc")))
    assert (found.kind, found.message, found.operator, found.of_program) == ("ValueError", "no", "abc", True)


def test_an_error_of_spark_is_a_failed_epoch_with_its_first_line() -> None:
    found = failure_of(RuntimeError("\n  Job aborted: executor 3 lost\n more"))
    assert type(found) is EpochError
    assert "Job aborted: executor 3 lost" in str(found)
    assert "more" not in str(found)
    report = report_of(found)
    # Its lines are there for whoever asks, and it is nothing that the program did.
    assert "more" in report.trace(full=True) and not report.trace(full=False) and not report.of_program


def test_a_row_that_sql_cannot_compute_with_is_the_program_whatever_task_it_was_in() -> None:
    text = """Job aborted due to stage failure: Task {0} in stage 3.0 failed 1 times, most recent failure: Lost task \
{0}.0 in stage 3.0 (TID 7) (host-{0} executor 1): org.apache.spark.SparkArithmeticException: [DIVIDE_BY_ZERO] Division \
by zero. Use `try_divide` to tolerate divisor being 0. SQLSTATE: 22012"""
    reports = [report_of(failure_of(RuntimeError(text.format(task)))) for task in ("a", "b")]
    assert all(report.of_program and report.message.startswith("[DIVIDE_BY_ZERO]") for report in reports)
    assert reports[0].error == reports[1].error
    assert not report_of(failure_of(RuntimeError(text.format("a").replace("22012", "58030")))).of_program


def test_an_error_without_text_is_named_by_its_kind() -> None:
    assert "ConnectionResetError" in str(failure_of(ConnectionResetError()))


def test_our_own_errors_on_the_driver_stay_as_they_are() -> None:
    error = errors.TransactionError("lost")
    assert failure_of(error) is error


def test_an_unknown_kind_is_still_an_error_of_ours() -> None:
    found = TaskFailure("FutureError", "from a newer worker", FailureReport("FutureError", "")).restored()
    assert type(found) is HoldfastError
    assert str(found) == "from a newer worker"


def test_errors_with_a_constructor_of_their_own_come_back() -> None:
    error = errors.CorruptFileError("chk-1/file", "the checksum differs")
    found = raised_again(error)
    assert type(found) is errors.CorruptFileError
    assert str(found) == str(error)


NOT_TAKEN_UP = {
    "a package is missing": """An exception was thrown from the Python worker: Traceback (most recent call last):
  File "pyspark/worker_util.py", line 75, in read_command
    command = serializer.loads(file)
  File "pyspark/cloudpickle/cloudpickle.py", line 469, in subimport
    __import__(name)
ModuleNotFoundError: No module named 'pyarrow'
 SQLSTATE: 38000
	at org.apache.spark.api.python.BasePythonRunner.run""",
    "a daemon that is not there": """Error from python worker:
  /usr/bin/python3: Error while finding module specification for 'holdfast.spark.internals.worker_daemon' (\
ModuleNotFoundError: No module named 'holdfast')
PYTHONPATH was:""",
    "no Python": """Lost task 0.0 in stage 62.0 (TID 62) (127.0.0.1 executor 0): java.io.IOException: Cannot run \
program "./environment/bin/python": error=13, Permission denied""",
    "another version": """pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in \
worker has different version: 3.9 than that in driver: 3.11""",
}


@pytest.mark.parametrize("text", NOT_TAKEN_UP.values(), ids=NOT_TAKEN_UP)
def test_a_python_that_cannot_take_up_our_tasks_is_no_lost_executor(text: str) -> None:
    found = failure_of(RuntimeError(text))
    assert type(found) is UnfitExecutorError
    assert any(word in str(found) for word in ("'pyarrow'", "'holdfast'", "./environment/bin/python", "3.9"))
    assert "spark.pyspark.python" in str(found)


def test_a_host_that_is_short_of_memory_for_a_moment_is_a_failed_epoch() -> None:
    text = 'java.io.IOException: Cannot run program "python3": error=12, Cannot allocate memory'
    assert type(failure_of(RuntimeError(text))) is EpochError


def test_a_failure_goes_to_every_task_of_the_next_level_and_from_there_to_the_driver() -> None:
    (batch,) = sent_by_a_task(errors.StoreVersionError("the store is at epoch 3"))
    assert batch.column("slot").to_pylist() == [3, 5]
    assert batch.column("edge").to_pylist() == [FAILURE_EDGE] * 2
    payload = batch.column("payload")[0].as_py()
    (again,) = sent_by_a_task(FailedBefore(unpack_header(payload)[0].failure))
    assert again == batch
    with pytest.raises(errors.StoreVersionError, match="the store is at epoch 3") as raised:
        raise_failure([pack(Header(), b"an acknowledgement"), payload])
    show_trace(raised.value, full=True)
    assert isinstance(raised.value.__cause__, TaskTraceback)
    assert "in send" in str(raised.value.__cause__)


def test_what_a_task_sent_before_it_failed_goes_out_before() -> None:
    first = pa.record_batch({"a": [1]})

    def send() -> Iterator[pa.RecordBatch]:
        yield first
        raise FunctionError("x")

    batches = list(sending_failures(send(), [0]))
    assert batches[0] is first and len(batches) == 2


def test_errors_of_others_are_left_to_spark() -> None:
    with pytest.raises(MemoryError):
        sent_by_a_task(MemoryError())


def test_messages_without_a_failure_raise_nothing() -> None:
    raise_failure([pack(Header(), b"an acknowledgement")])
