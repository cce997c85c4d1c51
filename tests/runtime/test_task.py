"""Whole epochs of all tasks in one process: state, stamps, failures, skipped levels, the end of input."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import pytest

from holdfast.connectors.collection import CollectionSource
from holdfast.connectors.sequence import NumberSequenceSource
from holdfast.errors import FunctionError, IncompleteInputError, StorageError, StoreVersionError
from holdfast.graph.stream_graph import Connection, KeyBy, Node
from holdfast.runtime import live_task
from holdfast.runtime.batch import Batch
from holdfast.runtime.endpoints import SinkOperator, SourceOperator
from holdfast.runtime.envelope import GROUP_SIZE, Barrier, Envelope
from holdfast.runtime.epoch import EpochSpec, Notification, NotificationKind
from holdfast.runtime.keyed import KeyedFlatMapOperator, KeyedProcessOperator
from holdfast.runtime.partitioners import Rebalance
from holdfast.runtime.router import Outbox, Router
from holdfast.runtime.source import ReaderContext, ReadLimit, Source, SourceReader
from holdfast.runtime.task import TaskRun
from holdfast.state.descriptors import ValueStateDescriptor
from holdfast.state.handles import CheckpointRequest, FileHandle, SnapshotType
from holdfast.state.snapshot_files import MemorySnapshotWriter
from holdfast.state.snapshot_io import SnapshotWriter
from holdfast.types.settings import CheckpointMode, CheckpointSettings
from holdfast.types.typeinfo import Types
from tests.graph.programs import Program
from tests.runtime.local_job import ListSink, LocalJob, plan_of, rows_of


class Count:
    """Counts the rows of a key in state, and all rows of the subtask in a field."""

    def __init__(self) -> None:
        self.seen = 0
        self.told: list[str] = []

    def open(self, context: Any) -> None:
        self.count = context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def flat_map(self, value: Any) -> Iterator[Any]:
        if value == "poison":
            raise ValueError("it is poison")
        self.seen += 1
        self.count.update((self.count.value() or 0) + 1)
        yield value, self.count.value()

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.told.append(f"complete {checkpoint_id}")

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self.told.append(f"aborted {checkpoint_id}")


def key_by(source: Node) -> Connection:
    return Connection(source, key_by=KeyBy(Types.STRING(), selector=lambda value: value))


def counting(rows: list[str], function: Any = None) -> Program:
    """Source -> key_by -> count -> sink."""
    program = Program()
    source = program.graph.add("Source", SourceOperator, CollectionSource(rows), Types.STRING(), [])
    source.parallelism = 1
    counted = program.graph.add(
        "Count",
        KeyedFlatMapOperator,
        function or Count(),
        Types.TUPLE([Types.STRING(), Types.LONG()]),
        [key_by(source)],
    )
    counted.uid = "count"
    sink(program, counted)
    return program


def sink(program: Program, source: Node, partitioner: Any = None) -> Node:
    node = program.graph.add("Sink", SinkOperator, ListSink(), source.output_type, [Connection(source, partitioner)])
    node.is_sink = True
    return node


@pytest.fixture(params=["heap", "lmdb", "rocksdb"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def expected_counts(rows: list[str]) -> list[tuple[str, int]]:
    counts: Counter[str] = Counter()
    found = []
    for row in rows:
        counts[row] += 1
        found.append((row, counts[row]))
    return found


@pytest.mark.parametrize("parallelism", [1, 3])
def test_counts_over_many_epochs_with_and_without_live_objects(tmp_path: Path, backend: str, parallelism: int) -> None:
    rows = random.Random(1).choices("abcdef", k=41)
    job = LocalJob(plan_of(counting(rows), tmp_path, backend, parallelism))
    out: list[Any] = []
    chance = random.Random(2)
    while True:
        acknowledged = job.run_epoch()
        out += rows_of(acknowledged)
        if all(a.ended for a in acknowledged):
            break
        if chance.random() < 0.4:
            live_task.forget_live_tasks("job")
    assert sorted(out) == sorted(expected_counts(rows))
    assert job.epoch == 21


def test_an_epoch_that_nobody_accepted_is_run_again(tmp_path: Path, backend: str) -> None:
    rows = ["a", "b", "a", "a", "b", "a"]
    job = LocalJob(plan_of(counting(rows), tmp_path, backend))
    out = rows_of(job.run_epoch())
    accepted, epoch = job.accepted, job.epoch
    for drop in (False, True):
        repeated = rows_of(job.run_epoch())
        if drop:
            live_task.forget_live_tasks("job")
        job.accepted, job.epoch = accepted, epoch
    assert rows_of(job.run_epoch()) == repeated
    out += repeated + rows_of(job.run_epoch())
    assert sorted(out) == sorted(expected_counts(rows))


def test_a_failed_task_leaves_the_epoch_before_and_names_row_key_and_subtask(tmp_path: Path, backend: str) -> None:
    job = LocalJob(plan_of(counting(["a", "b", "a", "poison"]), tmp_path, backend, parallelism=1))
    job.run_epoch()
    for _ in range(2):
        with pytest.raises(
            FunctionError,
            match=r"'Count' \(uid count\), subtask 1/1, key 'poison': ValueError: it is poison; the row was 'poison'",
        ):
            job.run_epoch()
    job.rows_per_subtask = 1
    assert rows_of(job.run_epoch()) == [("a", 2)]


def test_a_store_that_is_gone_after_the_first_epoch_is_never_taken_as_empty(tmp_path: Path, backend: str) -> None:
    job = LocalJob(plan_of(counting(["a", "b", "a", "b"]), tmp_path, backend))
    job.run_epoch()
    job.run_epoch()
    live_task.forget_live_tasks("job")
    job.plan = plan_of(counting(["a", "b", "a", "b"]), tmp_path / "another host", backend)
    with pytest.raises(StoreVersionError, match=r"epoch 2 is not on this host"):
        job.run_epoch()


def test_an_unaccepted_nonce_is_not_continued(tmp_path: Path, backend: str) -> None:
    job = LocalJob(plan_of(counting(["a"] * 8), tmp_path, backend))
    job.run_epoch()
    job.accepted = tuple(tuple("zombie" for _ in level) for level in job.accepted)
    with pytest.raises(StoreVersionError):
        job.run_epoch()


def test_restored_with_another_parallelism(tmp_path: Path, backend: str) -> None:
    rows = random.Random(3).choices("abcdefgh", k=30)
    first = LocalJob(plan_of(counting(rows), tmp_path / "one", backend, parallelism=3), rows_per_subtask=5)
    out = rows_of(first.run_epoch()) + rows_of(first.run_epoch())
    restored = first.checkpoint(7)
    out += expected_counts(rows)[10:15]  # the sink's rows of the checkpoint's own epoch
    first.run_epoch()  # comes to nothing: it is in no checkpoint
    second = LocalJob(
        plan_of(counting(rows), tmp_path / "two", backend, parallelism=2),
        attempt=2,
        epoch=restored.epoch,
        restored=restored,
    )
    while True:
        acknowledged = second.run_epoch()
        out += rows_of(acknowledged)
        if all(a.ended for a in acknowledged):
            break
    assert sorted(out) == sorted(expected_counts(rows))


def test_a_snapshot_that_cannot_be_written_fails_the_checkpoint_and_not_the_epoch(tmp_path: Path, backend: str) -> None:
    class FullDisk(SnapshotWriter):
        def write(self, name: str, data: bytes, shared: bool = False) -> FileHandle:
            raise StorageError("no space left on device")

    job = LocalJob(plan_of(counting(["a", "b", "a", "b"]), tmp_path, backend))
    out = rows_of(job.run_epoch(checkpoint=CheckpointRequest(1, SnapshotType.CHECKPOINT, 0, 1, 1), writer=FullDisk()))
    acknowledged = job.run_epoch(checkpoint=CheckpointRequest(2, SnapshotType.CHECKPOINT, 0, 1, 2), writer=FullDisk())
    out += rows_of(acknowledged)
    failures = {a.snapshot_failure for a in acknowledged}
    assert "StorageError: no space left on device" in failures
    assert sorted(out) == sorted(expected_counts(["a", "b", "a", "b"]))


def test_functions_are_told_of_checkpoints_and_their_fields_live_on(tmp_path: Path, backend: str) -> None:
    job = LocalJob(plan_of(counting(["a"] * 8), tmp_path, backend, parallelism=1))
    job.run_epoch()
    live_task.forget_live_tasks("job")
    job.run_epoch(notifications=(Notification(NotificationKind.COMPLETE, 4), Notification(NotificationKind.ABORTED, 5)))
    live_task.forget_live_tasks("job")
    job.run_epoch()
    (count,) = [
        o for task in live_task._live.values() for c in task.chains for o in c.operators if o.spec.name == "Count"
    ]
    assert count.function.seen == 6  # type: ignore[attr-defined]  # of this function
    assert count.function.told == ["complete 4", "aborted 5"]  # type: ignore[attr-defined]  # of this function


def test_the_last_epoch_closes_functions_and_removes_what_the_host_holds(tmp_path: Path, backend: str) -> None:
    job = LocalJob(plan_of(counting(["a", "b"]), tmp_path, backend))
    job.run_epoch()
    assert any(path.is_file() for path in tmp_path.rglob("*"))
    job.run_epoch(read_sources=False, close=True)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [key for key in live_task._live if key[0] == "job"]


def test_a_lost_message_fails_the_task(tmp_path: Path) -> None:
    plan = plan_of(counting(["a", "b"]), tmp_path, parallelism=1)
    job = LocalJob(plan)
    sent = list(TaskRun(plan, 0, 0, job.spec(), lambda: None).run(iter(()), []))
    with pytest.raises(IncompleteInputError, match="are missing in epoch 1"):
        list(TaskRun(plan, 1, 0, job.spec(), lambda: None).run(iter(sent[1:]), [0]))
    with pytest.raises(IncompleteInputError, match="No barrier from sender 0"):
        list(TaskRun(plan, 1, 0, job.spec(), lambda: None).run(iter(sent[:-1]), [0]))


@pytest.mark.parametrize("mode", CheckpointMode)
def test_a_row_behind_a_barrier_fails_the_task_and_is_not_processed(tmp_path: Path, mode: CheckpointMode) -> None:
    checkpoint = CheckpointSettings(interval_ms=1_000, mode=mode)
    plan = plan_of(counting(["a", "b"]), tmp_path, parallelism=1, checkpoint=checkpoint)
    job = LocalJob(plan)
    request = CheckpointRequest(1, SnapshotType.CHECKPOINT, 0, 1, 1)
    spec = job.spec(checkpoint=request, writer=MemorySnapshotWriter())
    sent = list(TaskRun(plan, 0, 0, spec, lambda: None).run(iter(()), []))
    rows = next(envelope for envelope in sent if envelope.edge >= 0)
    behind = copy(rows)
    behind.sequence = 1 + max(envelope.sequence for envelope in sent)
    receiver = TaskRun(plan, 1, 0, spec, lambda: None)
    receiver.start([0])
    for envelope in sent:
        receiver.receive(envelope)
    (count,) = [o for chain in receiver.chains for o in chain.operators if o.spec.name == "Count"]
    before = count.function.seen  # type: ignore[attr-defined]  # of this function
    with pytest.raises(IncompleteInputError, match="was sent behind its barrier"):
        receiver.receive(behind)
    assert count.function.seen == before > 0  # type: ignore[attr-defined]  # of this function
    receiver.abandon()


def test_rows_of_an_edge_that_skips_levels_arrive(tmp_path: Path) -> None:
    program = Program()
    near = program.graph.add("Near", SourceOperator, CollectionSource(["x", "y"]), Types.STRING(), [])
    far = program.graph.add("Far", SourceOperator, CollectionSource(["p", "q", "p"]), Types.STRING(), [])
    near.parallelism = far.parallelism = 1
    first = program.graph.add("First", KeyedFlatMapOperator, lambda v: [v], Types.STRING(), [key_by(far)])
    second = program.graph.add("Second", KeyedFlatMapOperator, lambda v: [v + v], Types.STRING(), [key_by(first)])
    union = program.map(near, second, name="Union", partitioner=Rebalance())
    union.output_type = Types.STRING()
    sink(program, union)
    job = LocalJob(plan_of(program, tmp_path), rows_per_subtask=10)
    assert sorted(rows_of(job.run_epoch())) == ["pp", "pp", "qq", "x", "y"]


# -- DataFrames --------------------------------------------------------------------------------------------------------


class AtTheEnd:
    """Emits a key when time ends."""

    def process_element(self, value: Any, ctx: Any) -> None:
        ctx.timer_service().register_event_time_timer(10)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield ctx.get_current_key()


def frame_program(with_source: bool = False) -> Program:
    program = Program()
    frame = program.graph.add("Frame", None, None, Types.STRING(), [])
    frame.data_frame, frame.parallelism = object(), 1
    inputs = [key_by(frame)]
    if with_source:
        source = program.graph.add("Source", SourceOperator, CollectionSource(["s"] * 6), Types.STRING(), [])
        source.parallelism = 1
        inputs.append(key_by(source))
    program.sink(program.graph.add("Ends", KeyedProcessOperator, AtTheEnd(), Types.STRING(), inputs)).body = ListSink()
    return program


def partition(job: LocalJob, index: int, rows: list[str], spec: EpochSpec) -> list[Envelope]:
    """What one partition of the DataFrame sends."""
    edge = next(e for e in job.plan.edges if e.of_data_frame)
    outbox = Outbox(GROUP_SIZE + index)
    router = Router(edge, index, index, "source 'Frame'", job.plan.options)
    router.begin_epoch(outbox)
    router.collect(Batch(rows))
    router.flush()
    return outbox.take() + outbox.close(Barrier(spec.attempt, spec.epoch, None, None, f"p{index}", 0))


def read_frame(job: LocalJob, partitions: Sequence[list[str]]) -> dict[str, Any]:
    """An epoch that reads the whole DataFrame."""
    spec = job.spec()
    return {
        "extra": [envelope for index, rows in enumerate(partitions) for envelope in partition(job, index, rows, spec)],
        "partitions": {1: len(partitions)},
        "data_frames_read": frame_ids(job),
    }


def frame_ids(job: LocalJob) -> frozenset[str]:
    return frozenset(e.source_operator for e in job.plan.edges if e.of_data_frame)


@pytest.mark.parametrize("with_source", [False, True])
@pytest.mark.parametrize(
    "partitions", [(["a", "b"], ["b", "c", "d"]), (["a"], []), ()], ids=["two", "one is empty", "none"]
)
def test_a_data_frame_ends_when_all_of_its_partitions_were_read(
    tmp_path: Path, backend: str, with_source: bool, partitions: Sequence[list[str]]
) -> None:
    job = LocalJob(plan_of(frame_program(with_source), tmp_path, backend))
    expected = sorted({row for rows in partitions for row in rows})
    out = rows_of(job.run_epoch(**read_frame(job, partitions)))
    assert with_source or sorted(out) == expected
    for _ in range(3):
        acknowledged = job.run_epoch(data_frames_read=frame_ids(job))
        out += rows_of(acknowledged)
    assert sorted(out) == expected + (["s"] if with_source else [])
    assert all(a.ended for a in acknowledged)


def test_a_job_without_sources_of_its_own_begins_with_level_1(tmp_path: Path, backend: str) -> None:
    """Where no DataFrame is read either, nobody sends barriers, and who asked for a snapshot is known all the same."""
    job = LocalJob(plan_of(frame_program(), tmp_path, backend), clock=lambda: 5_000)
    request = CheckpointRequest(1, SnapshotType.SAVEPOINT, 2_000, 1, 1, trigger_id="asked")
    acknowledged = job.run_epoch(checkpoint=request, writer=MemorySnapshotWriter())
    assert [(a.level, a.slot, a.consumed, a.trigger_id) for a in acknowledged] == [(1, s, {}, "asked") for s in (0, 1)]
    snapshots = [s for a in acknowledged for s in a.snapshots]
    assert {(s.start_delay_millis, s.alignment_millis) for s in snapshots} == {(3_000, 0)}
    assert not any(a.ended for a in acknowledged)
    assert all(a.ended for a in job.run_epoch(data_frames_read=frame_ids(job)))


def test_a_data_frame_that_was_read_stays_ended_after_a_restore(tmp_path: Path, backend: str) -> None:
    job = LocalJob(plan_of(frame_program(with_source=True), tmp_path / "first", backend))
    job.run_epoch(**read_frame(job, [["a", "b"], ["c"]]))
    restored = job.checkpoint(3)
    plan = plan_of(frame_program(with_source=True), tmp_path / "again", backend)
    again = LocalJob(plan, attempt=2, epoch=restored.epoch, restored=restored)
    out: list[Any] = []
    for _ in range(3):
        acknowledged = again.run_epoch(data_frames_read=frame_ids(job))
        out += rows_of(acknowledged)
    assert all(a.ended for a in acknowledged)
    assert sorted(out) == ["a", "b", "c", "s"]


# -- subtasks that have ended, in a new attempt ------------------------------------------------------------------------


def run_to_the_end(job: LocalJob, most: int) -> list[Any]:
    out: list[Any] = []
    for _ in range(most):
        acknowledged = job.run_epoch()
        out += rows_of(acknowledged)
        if all(a.ended for a in acknowledged):
            return out
    raise AssertionError("the job did not end")


def test_an_ended_source_stays_ended_in_a_new_attempt(tmp_path: Path, backend: str) -> None:
    def program() -> Program:
        made = Program()
        short = made.graph.add("Short", SourceOperator, CollectionSource(["a"]), Types.STRING(), [])
        long = made.graph.add("Long", SourceOperator, CollectionSource(["b"] * 9), Types.STRING(), [])
        short.parallelism = long.parallelism = 1
        ends = made.graph.add("Ends", KeyedProcessOperator, AtTheEnd(), Types.STRING(), [key_by(short), key_by(long)])
        made.sink(ends).body = ListSink()
        return made

    first = LocalJob(plan_of(program(), tmp_path / "first", backend))
    first.run_epoch()
    restored = first.checkpoint(1)
    plan = plan_of(program(), tmp_path / "again", backend)
    again = LocalJob(plan, attempt=2, epoch=restored.epoch, restored=restored)
    assert sorted(run_to_the_end(again, 6)) == ["a", "b"]


class Dealt(Source):
    """Numbers that are dealt out to subtasks; subtask 0 reads its share at once, the others a number at a time."""

    bounded = True

    def output_type(self) -> Any:
        return Types.LONG()

    def create_reader(self, context: ReaderContext) -> SourceReader:
        left = range(20) if context.restored is None else sorted(context.restored)
        mine = [n for place, n in enumerate(left) if place % context.parallelism == context.subtask]
        return DealtReader(mine, 100 if context.subtask == 0 else 1)


class DealtReader(SourceReader):
    def __init__(self, numbers: list[int], pace: int) -> None:
        self._numbers, self._pace = numbers, pace

    def read(self, limit: ReadLimit) -> Iterator[Batch]:
        read, self._numbers = self._numbers[: self._pace], self._numbers[self._pace :]
        self.ended = not self._numbers
        yield Batch(read)

    def positions(self) -> list[int]:
        return self._numbers


def test_a_subtask_that_had_ended_reads_its_share_of_what_the_others_left(tmp_path: Path, backend: str) -> None:
    def program() -> Program:
        made = Program()
        source = made.graph.add("Dealt", SourceOperator, Dealt(), Types.LONG(), [])
        made.sink(made.keyed(source)).body = ListSink()
        return made

    first = LocalJob(plan_of(program(), tmp_path / "first", backend))
    out = rows_of(first.run_epoch())
    assert len(out) == 11, "subtask 0 has read all, subtask 1 one number"
    restored = first.checkpoint(1)
    out.append(3)  # the row of the checkpoint's own epoch
    plan = plan_of(program(), tmp_path / "again", backend)
    again = LocalJob(plan, attempt=2, epoch=restored.epoch, restored=restored)
    assert sorted(out + run_to_the_end(again, 12)) == list(range(20))


def test_a_source_that_is_new_in_a_restored_job_begins_at_its_beginning(tmp_path: Path, backend: str) -> None:
    def program(grown: bool) -> Program:
        made = Program()
        old = made.graph.add("Old", SourceOperator, NumberSequenceSource(0, 9), Types.LONG(), [])
        old.uid = "old"
        made.sink(made.keyed(old)).body = ListSink()
        if grown:
            new = made.graph.add("New", SourceOperator, NumberSequenceSource(100, 104), Types.LONG(), [])
            made.sink(made.keyed(new, name="Other"), name="Other sink").body = ListSink()
        return made

    first = LocalJob(plan_of(program(False), tmp_path / "first", backend))
    out = rows_of(first.run_epoch())
    restored = first.checkpoint(1)
    again = LocalJob(
        plan_of(program(True), tmp_path / "again", backend), attempt=2, epoch=restored.epoch, restored=restored
    )
    out += run_to_the_end(again, 12)
    assert [n for n in sorted(out) if n >= 100] == list(range(100, 105))
