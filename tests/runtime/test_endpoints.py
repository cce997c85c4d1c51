"""Sources and sinks as functions with operator state, in jobs of several subtasks that are rescaled."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.common import Configuration
from holdfast.connectors.sequence import NumberSequenceSource
from holdfast.datastream import (
    CheckpointedFunction,
    CheckpointListener,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    KeySelector,
    RichSinkFunction,
    RuntimeContext,
    SourceFunction,
    StreamExecutionEnvironment,
)
from holdfast.datastream.state import ListStateDescriptor
from holdfast.errors import FunctionError, NotPicklableError, ProgramError
from holdfast.graph.job_graph import build_job_graph
from holdfast.graph.stream_graph import Connection, KeyBy
from holdfast.runtime import live_task
from holdfast.runtime.batch import Batch
from holdfast.runtime.contracts import WrappingFunction
from holdfast.runtime.endpoints import SinkFunctionOperator, SinkOperator, SourceOperator
from holdfast.runtime.epoch import Notification, NotificationKind, RestoredJob
from holdfast.runtime.keyed import KeyedMapOperator
from holdfast.runtime.partitioners import Rebalance
from holdfast.runtime.source import ReaderContext, ReadLimit, Source, SourceReader, WrappingReader
from holdfast.types.typeinfo import Types
from tests.graph.programs import Program, settings
from tests.integration.operator_functions import BufferingSink, Splits, calls
from tests.runtime.local_job import ListSink, LocalJob, plan_of, rows_of


def program_of(source: Any, sink: Any = None) -> Program:
    """Source -> rebalance -> sink, so that both may have any parallelism."""
    program = Program()
    read = program.graph.add("Source", SourceOperator, source, Types.LONG(), [])
    written = program.graph.add(
        "Sink", SinkOperator, sink or ListSink(), Types.LONG(), [Connection(read, Rebalance())]
    )
    read.uid, written.uid = "source", "sink"
    written.is_sink = True
    return program


def run_through(directory: Path, program: Program, layout: list[int], seed: int) -> list[Any]:
    """What is published over attempts of the parallelisms of ``layout``, each of which ends with lost epochs behind a
    checkpoint. Processes change at random.
    """
    chosen = random.Random(seed)
    published: list[Any] = []
    restored: RestoredJob | None = None
    for attempt, parallelism in enumerate(layout):
        plan = plan_of(program, directory / str(attempt), "heap", parallelism)
        epoch = 0 if restored is None else restored.epoch
        job = LocalJob(plan, attempt + 1, epoch, restored, rows_per_subtask=chosen.randint(2, 5))
        waiting: list[Any] = []
        for _ in range(chosen.randint(2, 6)):
            if chosen.random() < 0.5:
                live_task.forget_live_tasks("job")
            if chosen.random() < 0.4:
                restored, rows = checkpointed(job, attempt)
                published += waiting + rows
                waiting = []
            else:
                waiting += rows_of(job.run_epoch())
    last = LocalJob(
        plan_of(program, directory / "last", "heap", layout[-1]),
        len(layout) + 1,
        0 if restored is None else restored.epoch,
        restored,
        rows_per_subtask=7,
    )
    while True:
        acknowledged = last.run_epoch()
        published += rows_of(acknowledged)
        if all(a.ended for a in acknowledged):
            return published


def checkpointed(job: LocalJob, number: int) -> tuple[RestoredJob, list[Any]]:
    rows: list[Any] = []
    run_epoch = job.run_epoch

    def noting(*arguments: Any, **changes: Any) -> Any:
        acknowledged = run_epoch(*arguments, **changes)
        rows.extend(rows_of(acknowledged))
        return acknowledged

    job.run_epoch = noting  # type: ignore[method-assign]  # a wrapper for the test
    try:
        return job.checkpoint(number + 1), rows
    finally:
        job.run_epoch = run_epoch  # type: ignore[method-assign]  # a wrapper for the test


LAYOUT = [2, 3, 1, 5]


@pytest.mark.parametrize("seed", range(6))
def test_a_buffering_sink_loses_and_repeats_nothing(tmp_path: Path, seed: int) -> None:
    program = program_of(NumberSequenceSource(0, 199), BufferingSink(ListSink(), threshold=7))
    assert sorted(run_through(tmp_path, program, LAYOUT, seed)) == list(range(200))


@pytest.mark.parametrize("union", [True, False], ids=["union list", "split list"])
@pytest.mark.parametrize("seed", range(4))
def test_a_source_function_with_its_splits_in_operator_state(tmp_path: Path, union: bool, seed: int) -> None:
    splits = [(first, first + size) for first, size in [(0, 40), (40, 3), (43, 60), (103, 1), (104, 50)]]
    assert sorted(run_through(tmp_path, program_of(Splits(splits, union)), LAYOUT, seed)) == list(range(154))


def test_a_source_function_whose_splits_are_all_read_stays_at_its_end(tmp_path: Path) -> None:
    first = LocalJob(plan_of(program_of(Splits([(0, 3)], True)), tmp_path / "1"), rows_per_subtask=10)
    first.run_epoch()
    restored = first.checkpoint(1)
    again = LocalJob(plan_of(program_of(Splits([(0, 3)], True)), tmp_path / "2"), 2, restored.epoch, restored)
    acknowledged = again.run_epoch()
    assert rows_of(acknowledged) == [] and all(a.ended for a in acknowledged)


class Told(SourceReader):
    """Notes what it hears in a file."""

    def __init__(self, log: Path) -> None:
        self.log = log

    def note(self, what: str) -> None:
        with self.log.open("a") as file:
            file.write(f"{what}\n")

    def read(self, limit: ReadLimit) -> Iterator[Batch]:
        yield Batch([1])

    def positions(self) -> list[Any]:
        return []

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.note(f"complete {checkpoint_id}")

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self.note(f"aborted {checkpoint_id}")

    def close(self) -> None:
        self.note("close")


class ToldSource(Source):
    bounded = False
    max_parallelism = 1

    def __init__(self, log: Path, connection: bool = False) -> None:
        self._log = log
        self._connection = connection

    def output_type(self) -> Any:
        return Types.LONG()

    def create_reader(self, context: ReaderContext) -> SourceReader:
        reader = WrappingReader(Told(self._log))
        if self._connection:
            reader.connection = (n for n in ())  # type: ignore[attr-defined]  # of this reader
        return reader


def test_a_wrapping_reader_passes_all_calls_on(tmp_path: Path) -> None:
    log = tmp_path / "log"
    job = LocalJob(plan_of(program_of(ToldSource(log)), tmp_path, parallelism=1))
    job.run_epoch()
    job.run_epoch(notifications=(Notification(NotificationKind.COMPLETE, 1), Notification(NotificationKind.ABORTED, 2)))
    job.run_epoch(read_sources=False, close=True)
    assert calls(log) == ["complete 1", "aborted 2", "close"]


def test_a_reader_that_cannot_be_pickled_is_refused_before_it_is_missing(tmp_path: Path) -> None:
    job = LocalJob(plan_of(program_of(ToldSource(tmp_path / "log", connection=True)), tmp_path, parallelism=1))
    with pytest.raises(NotPicklableError, match=r"subtask 1/1: the field '_reader'.*__getstate__"):
        job.run_epoch()


class Broken(SourceFunction):
    def read(self, limit: ReadLimit) -> Any:
        raise OSError("no such host")


def test_a_source_function_that_raises_is_named(tmp_path: Path) -> None:
    job = LocalJob(plan_of(program_of(Broken()), tmp_path, parallelism=1))
    with pytest.raises(FunctionError, match=r"'Source' \(uid source\), subtask 1/1: OSError: no such host"):
        job.run_epoch()


class Shelf(RichSinkFunction, CheckpointedFunction, CheckpointListener):
    """Writes rows to a file when a checkpoint completes: what waits is operator state."""

    def __init__(self, log: Path) -> None:
        self.log = log

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        self.stored = context.get_operator_state_store().get_list_state(ListStateDescriptor("rows", Types.LONG()))
        self.rows = self.stored.get()

    def invoke(self, value: int, context: Any) -> None:
        assert context.timestamp() is None and context.current_processing_time() == 0
        self.rows.append(value)

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        self.stored.update(self.rows)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.finish()

    def finish(self) -> None:
        with self.log.open("a") as file:
            file.writelines(f"{row}\n" for row in self.rows)
        self.rows = []


def test_a_sink_function_with_state(tmp_path: Path) -> None:
    log = tmp_path / "rows"
    log.touch()
    program = Program()
    source = program.graph.add("Source", SourceOperator, NumberSequenceSource(0, 7), Types.LONG(), [])
    sink = program.graph.add("Sink", SinkFunctionOperator, Shelf(log), Types.LONG(), [Connection(source)])
    sink.is_sink = True
    job = LocalJob(plan_of(program, tmp_path / "1", parallelism=1), rows_per_subtask=2)
    restored = job.checkpoint(1)
    job.run_epoch()
    assert calls(log) == []
    again = LocalJob(plan_of(program, tmp_path / "2", parallelism=1), 2, restored.epoch, restored, rows_per_subtask=4)
    again.run_epoch(notifications=(Notification(NotificationKind.COMPLETE, 1),))
    assert calls(log) == ["0", "1"]
    again.run_epoch()
    assert calls(log) == [str(n) for n in range(8)]


class Selector(KeySelector):
    def __init__(self, log: Path) -> None:
        self.log = log

    def open(self, runtime_context: RuntimeContext) -> None:
        self.modulus = 3
        with self.log.open("a") as file:
            file.write(f"open {runtime_context.get_task_name()}\n")

    def get_key(self, value: int) -> int:
        return value % self.modulus

    def close(self) -> None:
        with self.log.open("a") as file:
            file.write("close\n")


def test_a_key_selector_is_opened_where_it_runs_and_closed_at_the_end(tmp_path: Path) -> None:
    log = tmp_path / "log"
    program = Program()
    source = program.graph.add("Source", SourceOperator, NumberSequenceSource(0, 9), Types.LONG(), [])
    connection = Connection(source, key_by=KeyBy(Types.LONG(), selector=Selector(log)))
    keyed = program.graph.add("Keyed", KeyedMapOperator, lambda value: value, Types.LONG(), [connection])
    program.sink(keyed).body = ListSink()
    job = LocalJob(plan_of(program, tmp_path, parallelism=1), rows_per_subtask=5)
    out = rows_of(job.run_epoch())
    live_task.forget_live_tasks("job")
    out += rows_of(job.run_epoch())
    job.run_epoch(read_sources=False, close=True)
    assert out == list(range(10))
    assert calls(log) == ["open Source", "open Source", "close"], "once per process, since its fields do not travel"


def test_key_selectors_that_cannot_work_are_refused(tmp_path: Path) -> None:
    class WithState(Selector, CheckpointedFunction):
        initialize_state = snapshot_state = lambda self, context: None

    env = StreamExecutionEnvironment(Configuration())
    stream = env.from_collection([1], Types.LONG())
    with pytest.raises(ProgramError, match="key selector WithState has operator state"):
        stream.key_by(WithState(tmp_path))

    class Wrapped(WrappingFunction, KeySelector):
        def get_key(self, value: int) -> int:
            return int(self.wrapped_function.get_key(value))

    with pytest.raises(ProgramError, match="key selector Wrapped has operator state"):
        stream.key_by(Wrapped(WithState(tmp_path)))
    program = Program()
    frame = program.graph.add("Frame", None, None, Types.LONG(), [])
    frame.data_frame, frame.parallelism = object(), 1
    connection = Connection(frame, key_by=KeyBy(Types.LONG(), selector=Selector(tmp_path)))
    program.sink(program.graph.add("Keyed", KeyedMapOperator, lambda value: value, Types.LONG(), [connection]))
    with pytest.raises(ProgramError, match=r"before 'Keyed' has open\(\).*DataFrame 'Frame'"):
        program.build()


def test_what_goes_where_is_checked() -> None:
    env = StreamExecutionEnvironment(Configuration())
    stream = env.from_collection([1], Types.LONG())
    wrong: Any = lambda value: value  # noqa: E731
    with pytest.raises(ProgramError, match=r"add_source\(\) takes a SourceFunction"):
        env.add_source(wrong)
    with pytest.raises(ProgramError, match=r"add_sink\(\) takes a SinkFunction"):
        stream.add_sink(wrong)
    with pytest.raises(ProgramError, match=r"transform\(\) takes a StreamOperator"):
        stream.transform("t", None, wrong)
    env.add_source(Broken()).set_parallelism(2)
    stream.add_sink(Shelf(Path("x")))
    with pytest.raises(ProgramError, match="at most 1 subtasks"):
        build_job_graph(env.get_stream_graph(), "j", "j", settings(), 1)
