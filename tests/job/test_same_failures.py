"""Attempts that fail as those before did: what counts as the same, and which jobs it ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from holdfast import failpoints
from holdfast.checkpoint.restart import RestartDecision
from holdfast.common import JobClient, Time, Types, WatermarkStrategy
from holdfast.datastream import AsyncDataStream, AsyncFunction, MapFunction
from holdfast.datastream.connectors.file_system import FileSink, FileSource
from holdfast.errors import EpochError, JobExecutionError, SourceUnreachableError
from holdfast.job.failure_texts import failed_attempt, full_text
from holdfast.job.same_failures import FailureFingerprint, Repetition, SameFailures, normalised
from holdfast.runtime.batch import Batch
from holdfast.runtime.epoch import EpochSpec
from holdfast.runtime.failure_report import FailureReport, Place
from holdfast.runtime.source import ReaderContext, ReadLimit, Source, SourceReader
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import PAIR, Scripted, environment, published
from tests.job.counting import EPOCHS, settings
from tests.kit.faults import FaultPlan

#: Restarts at once and without end, and of it the rule that holds where nothing is configured.
AT_ONCE = {"restart-strategy.fixed-delay.attempts": "20", "restart-strategy.fixed-delay.delay": "0 ms"}
LIMIT = {"holdfast.restart.same-failures": "3"}
#: Longer than any of these jobs lives.
NEVER = {"execution.checkpointing.interval": "365 d", "execution.checkpointing.min-pause": "365 d"}


@pytest.fixture
def faults(tmp_path: Path) -> Iterator[FaultPlan]:
    yield FaultPlan(tmp_path / "faults")
    failpoints.install(None)


def report(**changes: Any) -> FailureReport:
    given = {
        "kind": "ValueError",
        "message": "no",
        "operator": "op",
        "place": Place("/a/prog.py", 3, "map"),
        "of_program": True,
        **changes,
    }
    return FailureReport(**given)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("row 17 of 300 is wrong", "row 4 of 12 is wrong"),
        ("<Model object at 0x7f3a2c>", "<Model object at 0x55e0ff>"),
        ("id 2f1e8a9c-1d2e-4f3a-8b7c-0123456789ab", "id ffffffff-0000-4f3a-8b7c-0123456789ab"),
        ("took 1.5 s", "took 12e-3 s"),
        ("transaction 0123456789abcdef", "transaction fedcba9876543210"),
    ],
)
def test_numbers_and_addresses_do_not_make_messages_differ(one: str, other: str) -> None:
    assert normalised(one) == normalised(other)


def test_words_make_messages_differ() -> None:
    assert normalised("no such key: 'price'") != normalised("no such key: 'cost'")
    assert normalised("effaced") == "effaced"


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "KeyError"},
        {"operator": "other"},
        {"place": Place("/a/prog.py", 4, "map")},
        {"place": None},
    ],
)
def test_error_operator_and_place_make_a_failure(change: dict[str, Any]) -> None:
    assert FailureFingerprint.of(report()) != FailureFingerprint.of(report(**change))


def test_the_message_counts_where_no_line_is_known() -> None:
    one, other = report(message="no such key: 'a'"), report(message="no such key: 'b'")
    assert FailureFingerprint.of(one) == FailureFingerprint.of(other)
    nowhere = [FailureFingerprint.of(msgspec.structs.replace(each, place=None)) for each in (one, other)]
    assert nowhere[0] != nowhere[1]


def test_subtask_folder_and_trace_make_no_difference() -> None:
    one = report(operator="operator 'a', subtask 1/2", place=Place("/tmp/1/prog.py", 3, "map"), full_trace="x")
    other = report(operator="operator 'a', subtask 2/2", place=Place("/tmp/2/prog.py", 3, "map"), full_trace="y")
    assert FailureFingerprint.of(one) == FailureFingerprint.of(other)


def test_the_same_failure_is_hopeless_when_it_has_come_so_often() -> None:
    same = SameFailures(3)
    found = [same.on_failure(report(message=f"row {n}"), completed=0) for n in range(3)]
    assert [(each.count, each.in_a_row, each.hopeless) for each in found] == [
        (1, 1, False),
        (2, 2, False),
        (3, 3, True),
    ]


def test_a_completed_checkpoint_begins_the_count_anew() -> None:
    same = SameFailures(2)
    assert [same.on_failure(report(), completed=n).hopeless for n in (0, 1, 2, 2)] == [False, False, False, True]


def test_attempts_in_a_row_are_told_over_checkpoints() -> None:
    same = SameFailures(9)
    found = [same.on_failure(report(), completed) for completed in (0, 0, 1, 1)]
    assert [(each.count, each.in_a_row) for each in found] == [(1, 1), (2, 2), (1, 3), (2, 4)]


def test_a_failure_that_is_told_again_without_a_line_is_one_line_too() -> None:
    failure = EpochError("Spark planned the epoch in a way that does not keep slots\n*(1) Project\n+- *(1) Scan")
    again = Repetition(2, 2, False)
    told = failed_attempt(2, failure, again, RestartDecision(True, 5, "restart 2 of 20"), full=True)
    assert told == (
        "Attempt 2 failed as the one before, 2 times so far: Spark planned the epoch in a way that does not keep "
        "slots. Restarting in 5 ms (restart 2 of 20)."
    )


def test_another_failure_in_between_takes_nothing_back() -> None:
    same = SameFailures(2)
    lost = report(kind="EpochError", of_program=False)
    assert [same.on_failure(each, 0).hopeless for each in (report(), lost, report())] == [False, False, True]
    assert same.on_failure(lost, 0).in_a_row == 1


def test_what_the_program_did_not_do_is_never_hopeless() -> None:
    same = SameFailures(2)
    found = [same.on_failure(report(of_program=False), 0) for _ in range(9)]
    assert found[-1].count == 9 and not any(each.hopeless for each in found)


def test_without_a_limit_nothing_is_hopeless() -> None:
    same = SameFailures(None)
    assert not any(same.on_failure(report(), 0).hopeless for _ in range(9))


# -- jobs


class Divides(MapFunction):
    def map(self, value: tuple[int, int]) -> tuple[int, int]:
        return value[0], self.share(value[1])

    def share(self, number: int) -> int:
        return 100 // (number - 12)


class Keeps(MapFunction):
    def map(self, value: tuple[int, int]) -> tuple[int, int]:
        return value


def run(tmp_path: Path, function: MapFunction, **changes: str) -> JobClient:
    given = settings(tmp_path, **changes)
    if "restart-strategy.type" not in changes and not changes.get("restart-strategy.fixed-delay.attempts"):
        given = {key: value for key, value in given.items() if not key.startswith("restart-strategy")}
    env = environment(**given)
    if not any(key.startswith("restart-strategy") for key in given):
        env.get_configuration().remove_config("restart-strategy.type")
    source = env.from_source(Scripted(EPOCHS), WatermarkStrategy.no_watermarks(), "script").uid("source")
    keyed = source.key_by(lambda row: row[0], Types.LONG())
    keyed.map(function, PAIR).name("shares").uid("shares").sink_to(FileSink.json(str(tmp_path / "out"))).uid("out")
    return env.execute_async("sharing")


def failed(client: JobClient) -> JobExecutionError:
    with pytest.raises(JobExecutionError) as caught:
        client.get_job_execution_result().result(60)
    return caught.value


def test_where_nothing_is_configured_the_third_time_ends_the_job(in_process: InProcessEngine, tmp_path: Path) -> None:
    """Two epochs are durable before the row that fails, so that a checkpoint has completed, but none in between."""
    client = run(tmp_path, Divides())
    error = failed(client)
    assert client.get_history().attempt == 3
    assert "failed in the same way 3 times" in str(error)
    assert "restart-strategy.type" in str(error) and "holdfast.restart.same-failures" in str(error)
    lines = error.trace.splitlines()
    assert f'File "{__file__}"' in lines[1] and "in map" in lines[1]
    assert lines[-1] == "ZeroDivisionError: integer division or modulo by zero"
    assert "holdfast/" not in error.trace.replace(__file__, "")
    # Over REST it is the same.
    failure = client.get_history().failures[-1].error
    told = full_text(failure, full=False)
    assert told.startswith(error.trace) and f"FunctionError: {failure}" in told and "runtime/" not in told
    assert "runtime/" in full_text(failure, full=True)
    # What is durable is published, and nothing twice.
    done = [(key, Divides().share(number)) for rows in EPOCHS[:2] for key, number in rows]
    assert published(tmp_path / "out") == sorted(done)


def test_the_job_goes_on_from_its_checkpoint_when_the_program_is_corrected(
    in_process: InProcessEngine, tmp_path: Path
) -> None:
    failed(run(tmp_path, Divides(), **AT_ONCE, **LIMIT))
    run(tmp_path, Keeps(), **AT_ONCE, **LIMIT).get_job_execution_result().result(60)
    before = [(key, Divides().share(number)) for rows in EPOCHS[:2] for key, number in rows]
    behind = [row for rows in EPOCHS[2:] for row in rows]
    assert published(tmp_path / "out") == sorted(before + behind)


def test_a_configured_strategy_decides_alone(in_process: InProcessEngine, tmp_path: Path) -> None:
    client = run(tmp_path, Divides(), **AT_ONCE | {"restart-strategy.fixed-delay.attempts": "6"})
    assert "used up" in str(failed(client))
    assert client.get_history().attempt == 7


def test_the_option_holds_beside_a_strategy_and_zero_is_without_end(
    in_process: InProcessEngine, tmp_path: Path
) -> None:
    one = run(tmp_path / "one", Divides(), **AT_ONCE, **LIMIT | {"holdfast.restart.same-failures": "2"})
    assert "in the same way 2 times" in str(failed(one)) and one.get_history().attempt == 2
    changes = AT_ONCE | {"restart-strategy.fixed-delay.attempts": "5", "holdfast.restart.same-failures": "0"}
    other = run(tmp_path / "other", Divides(), **changes)
    assert "used up" in str(failed(other)) and other.get_history().attempt == 6


def failing_epochs(
    in_process: InProcessEngine, attempts: int, error: Callable[[int], BaseException], after: int = 0
) -> None:
    def before_epoch(spec: EpochSpec) -> None:
        done = sum(attempt == spec.attempt for attempt, _ in in_process.epochs)
        if spec.attempt <= attempts and done == after:
            raise error(spec.attempt)

    in_process.before_epoch = before_epoch


@pytest.mark.parametrize(
    "error",
    [
        lambda attempt: EpochError("Python worker exited unexpectedly (crashed)"),
        lambda attempt: OSError("the disk is full"),
        lambda attempt: SourceUnreachableError("no broker answers"),
    ],
)
def test_a_flaky_cluster_never_ends_a_job(
    in_process: InProcessEngine, tmp_path: Path, error: Callable[[int], BaseException]
) -> None:
    """Worker after worker is lost before the first checkpoint."""
    failing_epochs(in_process, attempts=8, error=error)
    client = run(tmp_path, Keeps(), **AT_ONCE, **LIMIT)
    client.get_job_execution_result().result(60)
    assert client.get_history().restarts == 8
    assert published(tmp_path / "out") == sorted(row for rows in EPOCHS for row in rows)


class Unlucky(MapFunction):
    """Fails on one row for as many attempts as it is told, with an error of a service that is away."""

    def __init__(self, marks: Path, times: int, error: Callable[[], Exception]) -> None:
        self._marks, self._times, self._error = marks, times, error

    def map(self, value: tuple[int, int]) -> tuple[int, int]:
        if value[1] == 12:
            seen = len(list(self._marks.glob("*")))
            if seen < self._times:
                (self._marks / str(seen)).touch()
                raise self._error()
        return value


@pytest.mark.parametrize("error", [ConnectionError, TimeoutError, MemoryError, KeyError])
def test_what_the_program_raises_ends_the_job_whatever_it_is(
    in_process: InProcessEngine, tmp_path: Path, error: Callable[[], Exception]
) -> None:
    (tmp_path / "marks").mkdir()
    client = run(tmp_path, Unlucky(tmp_path / "marks", 6, error), **AT_ONCE, **LIMIT)
    assert "holdfast.restart.same-failures" in str(failed(client))
    assert client.get_history().attempt == 3


def test_a_service_that_is_away_is_waited_for_where_the_program_says_so(
    in_process: InProcessEngine, tmp_path: Path
) -> None:
    (tmp_path / "marks").mkdir()
    client = run(tmp_path, Unlucky(tmp_path / "marks", 6, TimeoutError), **AT_ONCE)
    client.get_job_execution_result().result(60)
    assert client.get_history().restarts == 6
    assert published(tmp_path / "out") == sorted(row for rows in EPOCHS for row in rows)


class Poisoned(Scripted):
    """Gives rows, and then cannot read what comes next."""

    def __init__(self, epochs: list[list[Any]], error: Exception) -> None:
        super().__init__(epochs, ends=False)
        self.error = error

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return PoisonedReader(super().create_reader(context), self.error)


class PoisonedReader(SourceReader):
    def __init__(self, reader: SourceReader, error: Exception) -> None:
        self._reader, self._error = reader, error

    def read(self, limit: ReadLimit) -> Iterator[Batch]:
        rows = list(self._reader.read(limit))
        if not rows:
            raise self._error
        yield from rows

    def positions(self) -> list[int]:
        return self._reader.positions()


def read_by(tmp_path: Path, source: Source) -> JobClient:
    env = environment(**{**settings(tmp_path, **AT_ONCE), **LIMIT})
    rows = env.from_source(source, WatermarkStrategy.no_watermarks(), "rows").uid("source")
    rows.sink_to(FileSink.json(str(tmp_path / "out"))).uid("out")
    return env.execute_async("reading")


@pytest.mark.parametrize("error", [ValueError("not a number"), ConnectionError("nobody listens")])
def test_a_source_of_the_program_ends_the_job_with_its_line(
    in_process: InProcessEngine, tmp_path: Path, error: Exception
) -> None:
    client = read_by(tmp_path, Poisoned(EPOCHS[:2], error))
    assert "in the same way 3 times" in str(ended := failed(client))
    assert client.get_history().attempt == 3
    assert ended.trace.splitlines()[-1] == f"{type(error).__name__}: {error}" and "in read" in ended.trace
    assert published(tmp_path / "out") == sorted(row for rows in EPOCHS[:2] for row in rows)


def test_a_line_of_a_file_that_is_no_row_ends_the_job(in_process: InProcessEngine, tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text('{"id": 1}\n{"id": "x"}\n')
    client = read_by(tmp_path, FileSource.json(str(tmp_path / "in.json"), "id BIGINT"))
    assert "in the same way 3 times" in str(ended := failed(client)) and "line 2" in str(ended)
    assert client.get_history().attempt == 3


def test_a_parquet_file_that_is_none_ends_the_job(in_process: InProcessEngine, tmp_path: Path) -> None:
    """Arrow says so as it says that a storage is away."""
    pq.write_table(pa.table({"id": list(range(1000))}), tmp_path / "in.parquet")
    whole = (tmp_path / "in.parquet").read_bytes()
    (tmp_path / "in.parquet").write_bytes(whole[:4] + b"\xff" * 200 + whole[204:])
    client = read_by(tmp_path, FileSource.parquet(str(tmp_path / "in.parquet"), "id BIGINT"))
    assert "in the same way 3 times" in str(failed(client)) and client.get_history().attempt == 3


@pytest.mark.parametrize(("action", "times", "ends"), [("raise", 3, True), ("raise:EIO", 5, False)])
def test_what_nobody_foresaw_in_a_task_ends_the_job_unless_the_host_may_mend(
    in_process: InProcessEngine, faults: FaultPlan, tmp_path: Path, action: str, times: int, ends: bool
) -> None:
    for _ in range(times):
        faults.add("task.before-commit", action, level=1, slot=1)
    failpoints.install(faults.path)
    client = run(tmp_path, Keeps(), **AT_ONCE, **LIMIT)
    if ends:
        assert "in the same way 3 times" in str(failed(client))
    else:
        client.get_job_execution_result().result(60)
        assert client.get_history().restarts == times


class NeverAnswers(AsyncFunction):
    async def async_invoke(self, value: Any) -> list[Any]:
        await asyncio.sleep(60)
        return [value]


def test_calls_that_time_out_end_the_job(in_process: InProcessEngine, tmp_path: Path) -> None:
    env = environment(**{**settings(tmp_path, **AT_ONCE), **LIMIT})
    rows = env.from_source(Scripted(EPOCHS), WatermarkStrategy.no_watermarks(), "rows").uid("source")
    AsyncDataStream.unordered_wait(rows, NeverAnswers(), Time.milliseconds(20), 4, PAIR).print()
    client = env.execute_async("asking")
    assert "CallTimeoutError" in str(failed(client)) and client.get_history().attempt == 3


def test_a_checkpoint_in_between_lets_the_job_go_on(in_process: InProcessEngine, tmp_path: Path) -> None:
    """One error at one line, but on another row each time: the job gets on."""

    class Each(MapFunction):
        def map(self, value: tuple[int, int]) -> tuple[int, int]:
            mark = tmp_path / f"mark-{value[1]}"
            if value[1] % 5 == 0 and not mark.exists():
                mark.touch()
                raise ValueError(f"row {value[1]}")
            return value

    client = run(tmp_path, Each(), **AT_ONCE, **LIMIT | {"holdfast.restart.same-failures": "2"})
    client.get_job_execution_result().result(60)
    assert client.get_history().restarts == 6
    assert published(tmp_path / "out") == sorted(row for rows in EPOCHS for row in rows)


def test_a_failure_that_is_told_again_is_one_line(
    in_process: InProcessEngine, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="holdfast"):
        failed(run(tmp_path, Divides(), **AT_ONCE, **LIMIT | {"holdfast.restart.same-failures": "4"}))
    first, second, third = (r.getMessage() for r in caplog.records if r.getMessage().startswith("Attempt "))
    line = Divides.share.__code__.co_firstlineno + 1
    assert first.splitlines()[0] == (
        f"Attempt 1 failed at {__file__}, line {line}, in share: ZeroDivisionError: integer division or modulo by zero"
    )
    assert "operator 'shares'" in first and "the row was (0, 12)" in first
    assert "\n" not in second and "2 times so far" in second
    assert "\n" not in third and "3 times so far: ZeroDivisionError" in third
    assert not any("was aborted" in record.getMessage() for record in caplog.records)


def test_all_frames_are_told_on_request(
    in_process: InProcessEngine, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="holdfast"):
        error = failed(run(tmp_path, Divides(), **AT_ONCE, **LIMIT, **{"holdfast.errors.full-traces": "true"}))
    logged = next(r.getMessage() for r in caplog.records if r.getMessage().startswith("Attempt 1"))
    for told in (error.trace, logged):
        first, _, behind = told.partition("ZeroDivisionError: ")
        assert __file__ in first and "holdfast/runtime/" not in first
        assert "holdfast/runtime/" in behind


def test_failures_of_a_job_that_runs_for_years_are_not_all_kept(in_process: InProcessEngine, tmp_path: Path) -> None:
    failing_epochs(in_process, attempts=105, error=lambda attempt: EpochError(f"lost {attempt}"))
    client = run(tmp_path, Keeps(), **AT_ONCE | {"restart-strategy.fixed-delay.attempts": "200"})
    client.get_job_execution_result().result(60)
    history = client.get_history()
    assert history.restarts == 105
    assert [failure.attempt for failure in history.failures] == list(range(6, 106))
