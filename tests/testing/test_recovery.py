"""Snapshots at any moment, restored and rescaled, against an oracle, on both backends."""

from __future__ import annotations

import random
from typing import Any

import pytest

from holdfast.common import Types
from holdfast.errors import FunctionError
from holdfast.state.handles import CheckpointRequest, SnapshotType
from holdfast.state.snapshot_files import MemorySnapshotWriter
from holdfast.testing import HarnessSnapshot, KeyedOperatorHarness, ManualClock, Subtasks
from tests.state.stores import LMDB_IMAGE
from tests.testing.chains import is_chain
from tests.testing.functions import VALUE, Everything
from tests.testing.oracle import KEYS, Oracle, random_row


@pytest.fixture(params=["heap", "lmdb", LMDB_IMAGE, "rocksdb"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def first(row: Any) -> Any:
    return row[0]


def restored(snapshot: Any, backend: str, **options: Any) -> KeyedOperatorHarness:
    return KeyedOperatorHarness.restore(snapshot, Everything(), first, Types.STRING(), backend=backend, **options)


#: So much state that a chain of deltas is cheaper than a new image.
FILLER = [(f"other-{n}", "set", n) for n in range(2000)]


class Story:
    """A harness, its oracle, and the last snapshot with the oracle as it was then."""

    def __init__(self, backend: str, seed: int) -> None:
        self.backend = backend
        self.chance = random.Random(seed)
        self.clock = ManualClock(1000)
        self.harness = KeyedOperatorHarness(Everything(), first, Types.STRING(), backend=backend, clock=self.clock)
        self.harness.push_all(FILLER).end_epoch().take_output()
        self.oracle = Oracle()
        self.committed = self.oracle.copy()
        self.snapshots: list[tuple[HarnessSnapshot, Oracle]] = []

    def rows(self) -> None:
        rows = [random_row(self.chance, self.clock()) for _ in range(self.chance.randrange(1, 15))]
        self.harness.push_all(rows)
        for row in rows:
            self.oracle.push(row)
        self.oracle.advance_clock(self.clock())

    def watermark(self) -> None:
        to = self.clock() + self.chance.randrange(0, 20)
        self.harness.advance_watermark(to)
        self.oracle.advance_watermark(to)

    def time(self) -> None:
        self.harness.advance_processing_time(self.chance.randrange(0, 15))
        self.oracle.advance_clock(self.clock())

    def end_epoch(self) -> None:
        self.harness.end_epoch()
        self.committed = self.oracle.copy()
        if self.chance.random() < 0.5:
            self.harness.forget_live_objects()

    def snapshot(self) -> None:
        snapshot = self.harness.snapshot(full=self.chance.random() < 0.2)
        self.committed = self.oracle.copy()
        self.snapshots.append((snapshot, self.oracle.copy()))

    def abort(self) -> None:
        """A checkpoint that is written and comes to nothing."""
        base = self.snapshots[-1][0].epoch if self.snapshots else None
        request = CheckpointRequest(99, SnapshotType.CHECKPOINT, 0, self.harness.attempt, self.harness.epoch + 1, base)
        self.harness.checkpoint(request, MemorySnapshotWriter())
        self.harness.notify_checkpoint_aborted(99)
        self.committed = self.oracle.copy()

    def fail(self) -> None:
        with pytest.raises(FunctionError):
            self.harness.push((self.chance.choice(KEYS), "fail", 0))
        self.oracle = self.committed.copy()
        self.harness.take_output()
        self.oracle.output.clear()
        self.harness.open()
        self.oracle.advance_clock(self.clock())

    def restore(self) -> None:
        if not self.snapshots:
            return
        self.harness.close()
        snapshot, oracle = self.chance.choice(self.snapshots[-3:])
        self.harness = restored(snapshot, self.backend, clock=self.clock).open()
        self.oracle = oracle.copy()
        self.oracle.output.clear()
        self.oracle.advance_clock(self.clock())
        self.committed = oracle.copy()
        self.snapshots = [(snapshot, oracle)]

    def check(self) -> None:
        assert sorted(map(str, self.harness.take_output())) == sorted(map(str, self.oracle.output))
        self.oracle.output.clear()

    def check_everything(self) -> None:
        self.oracle.check_state(self.harness)
        assert self.harness.num_event_time_timers() == len(self.oracle.event)
        assert self.harness.num_processing_time_timers() == len(self.oracle.processing)


@pytest.mark.parametrize("seed", range(6))
def test_random_moments(backend: str, seed: int) -> None:
    story = Story(backend, seed)
    seldom = [
        story.watermark,
        story.time,
        story.end_epoch,
        story.snapshot,
        story.snapshot,
        story.abort,
        story.fail,
        story.restore,
    ]
    for number in range(120):
        story.chance.choice([story.rows] * 6 + seldom)()
        story.check()
        if number % 10 == 9:
            story.check_everything()
    story.harness.close()


# -- rescaling ---------------------------------------------------------------------------------------------------------


def check_all(harnesses: Subtasks[KeyedOperatorHarness], oracle: Oracle) -> None:
    oracle.check_state(harnesses)
    assert sum(harness.num_event_time_timers() for harness in harnesses) == len(oracle.event)
    assert sum(harness.num_processing_time_timers() for harness in harnesses) == len(oracle.processing)


@pytest.mark.parametrize("parallelisms", [(1, 3, 2), (2, 5, 1), (4, 4, 3)])
@pytest.mark.parametrize("max_parallelism", [5, 128])
def test_rescaled_from_snapshots_of_all_subtasks(
    backend: str, parallelisms: tuple[int, ...], max_parallelism: int
) -> None:
    chance, oracle = random.Random(7), Oracle()
    options: Any = {"backend": backend, "max_parallelism": max_parallelism}
    harnesses = KeyedOperatorHarness.parallel(parallelisms[0], Everything(), first, Types.STRING(), **options)
    for parallelism in parallelisms[1:]:
        for step in range(60):
            row = random_row(chance, 100)
            harnesses.push(row)
            oracle.push(row)
            if step % 20 == 10:
                harnesses.snapshot()  # so that the last one is a delta
        harnesses = harnesses.rescaled(parallelism)
        check_all(harnesses, oracle)
    oracle.output.clear()
    oracle.advance_watermark(150)
    with harnesses:
        assert sorted(harnesses.advance_watermark(150).take_output()) == sorted(oracle.output)


def test_the_first_snapshot_after_rescaling_is_full(backend: str) -> None:
    with KeyedOperatorHarness(Everything(), first, Types.STRING(), backend=backend) as harness:
        harness.push_all([(key, "set", 1) for key in KEYS])
        snapshot = harness.snapshot()
    with restored(snapshot, backend) as same:
        same.push((KEYS[0], "set", 2))
        assert consists_of(same.snapshot(), 1)
    for other in KeyedOperatorHarness.rescale(snapshot, 2, Everything(), first, Types.STRING(), backend=backend):
        assert consists_of(other.snapshot(), 0)
        other.close()


def test_the_backend_may_change_at_a_restore() -> None:
    oracle, chance = Oracle(), random.Random(1)
    snapshot = None
    for backend in ("heap", "lmdb", "rocksdb", LMDB_IMAGE, "heap", LMDB_IMAGE, "rocksdb"):
        harness = (
            KeyedOperatorHarness(Everything(), first, Types.STRING(), backend=backend)
            if snapshot is None
            else restored(snapshot, backend)
        )
        with harness:
            oracle.check_state(harness)
            for _ in range(40):
                row = random_row(chance, 100)
                harness.push(row)
                oracle.push(row)
            snapshot = harness.snapshot()
            assert consists_of(snapshot, 0)
    with restored(snapshot, "rocksdb") as last:
        oracle.check_state(last)


def consists_of(snapshot: HarnessSnapshot, deltas: int) -> bool:
    (subtask,) = snapshot.record.subtasks
    return is_chain(subtask.keyed, deltas)


# -- checkpoints that come to nothing, and images in between -----------------------------------------------------------


def test_an_aborted_checkpoint_then_a_completed_one(backend: str) -> None:
    oracle = Oracle()
    with KeyedOperatorHarness(Everything(), first, Types.STRING(), backend=backend) as harness:

        def push(*rows: tuple[str, str, int]) -> None:
            harness.push_all(rows)
            for row in rows:
                oracle.push(row)

        push(*((key, "add", 1) for key in KEYS))
        base = harness.snapshot()
        push(("key-1", "set", 5), ("key-2", "clear", 0), ("key-3", "put", 3))
        request = CheckpointRequest(50, SnapshotType.CHECKPOINT, 0, 1, harness.epoch + 1, base.epoch)
        harness.checkpoint(request, MemorySnapshotWriter())
        harness.notify_checkpoint_aborted(50)
        push(("key-4", "add", 7), ("key-3", "remove", 3))
        harness.end_epoch()
        push(("key-5", "event", 9))
        completed = harness.snapshot()
    assert consists_of(completed, 1)
    with restored(completed, backend) as again:
        oracle.check_state(again)
        assert again.num_event_time_timers() == 1


def test_a_full_image_between_two_deltas_that_nobody_builds_on(backend: str) -> None:
    """As a savepoint is: it stands alone, and the deltas go on from the checkpoint before it."""
    oracles: list[Oracle] = []
    oracle = Oracle()
    with KeyedOperatorHarness(Everything(), first, Types.STRING(), backend=backend) as harness:
        harness.push_all(FILLER).snapshot()
        snapshots = []
        for step, kind in enumerate(["delta", "image", "delta"]):
            for row in (
                ("key-1", "add", step),
                ("key-2", "put", step),
                ("key-3", "clear" if step == 1 else "set", step),
            ):
                harness.push(row)
                oracle.push(row)
            if kind == "image":
                request = CheckpointRequest(70, SnapshotType.SAVEPOINT, 0, 1, harness.epoch + 1)
                written = harness.checkpoint(request, MemorySnapshotWriter())
                snapshots.append(HarnessSnapshot.of_one(harness._program.operator, request, written))
            else:
                snapshots.append(harness.snapshot())
            oracles.append(oracle.copy())
    assert all(consists_of(*each) for each in zip(snapshots, [1, 0, 2], strict=True))
    for snapshot, expected in zip(snapshots, oracles, strict=True):
        with restored(snapshot, backend) as again:
            expected.check_state(again)


def test_a_delta_writes_what_changed_and_no_more(backend: str) -> None:
    keys = [f"{n:06d}" for n in range(5000)]
    with KeyedOperatorHarness(Everything(), first, Types.STRING(), backend=backend) as harness:
        harness.push_all([(key, "set", n) for n, key in enumerate(keys)])
        full = harness.snapshot().bytes_written
        harness.push_all([(key, "set", 1) for key in keys[::100]])
        delta = harness.snapshot()
        assert delta.bytes_written < full * 0.05
        assert harness.snapshot().bytes_written < 2500  # operator state, and which files make up a database
    with restored(delta, backend) as again:
        assert [again.state(VALUE, key) for key in keys[:101:100]] == [1, 1]
        assert again.state(VALUE, keys[1]) == 1
        assert again.state(VALUE, keys[99]) == 99
