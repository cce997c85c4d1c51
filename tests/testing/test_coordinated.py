"""Harnesses under a real coordinator: several checkpoints pending at once, completed or aborted in any order."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from holdfast.checkpoint.completed import CompletedCheckpoint
from holdfast.checkpoint.completed_store import (
    CompletedCheckpointStore,
    FileCompletedCheckpointStore,
    MemoryCompletedCheckpointStore,
)
from holdfast.checkpoint.coordinator import CheckpointCoordinator
from holdfast.checkpoint.job_facts import JobFacts, JobOperator
from holdfast.checkpoint.pending import AcknowledgeResult
from holdfast.checkpoint.policy import CheckpointPolicy
from holdfast.checkpoint.reasons import CheckpointFailureReason
from holdfast.checkpoint.services import JobServices
from holdfast.checkpoint.snapshot_triggers import CheckpointKind, SnapshotTrigger
from holdfast.checkpoint.storage import CheckpointStorage, FileCheckpointStorage, MemoryCheckpointStorage
from holdfast.common import Types
from holdfast.state.backends import load_backend
from holdfast.state.handles import CheckpointRequest, SubtaskSnapshot
from holdfast.state.keys import KEY_HASH
from holdfast.testing import HarnessSnapshot, KeyedOperatorHarness, ManualClock
from tests.state.stores import LMDB_IMAGE
from tests.testing.chains import is_chain
from tests.testing.functions import Everything
from tests.testing.oracle import Oracle, random_row

FILLER = [(f"other-{n}", "set", n) for n in range(2000)]


def first(row: Any) -> Any:
    return row[0]


class Job:
    """One keyed operator of parallelism 1, its coordinator, and an oracle for every checkpoint."""

    def __init__(self, backend: str, storage: CheckpointStorage, num_retained: int = 3) -> None:
        self.backend = backend
        self.storage = storage
        store: CompletedCheckpointStore
        if isinstance(storage, FileCheckpointStorage):
            store = FileCompletedCheckpointStore(storage, num_retained)
        else:
            store = MemoryCompletedCheckpointStore(storage, num_retained)
        self.store = store
        self.clock = ManualClock()
        self.attempt = 1
        self.oracle = Oracle()
        self.oracles: dict[int, Oracle] = {}
        self.written: dict[int, SubtaskSnapshot] = {}
        self.harness = KeyedOperatorHarness(Everything(), first, Types.STRING(), backend=backend, clock=self.clock)
        self.operator_id = self.harness.operator_id
        policy = CheckpointPolicy(max_concurrent=9, tolerable_failures=1000)
        self.coordinator = CheckpointCoordinator(
            policy, self.facts(), storage, JobServices.local(storage, store), self.clock, random.Random(1)
        )
        self.coordinator.start_attempt(self.attempt)
        self.harness.push_all(FILLER).take_output()

    def facts(self) -> JobFacts:
        operator = JobOperator(self.operator_id, "Everything", 1, 128)
        return JobFacts("job", "job", KEY_HASH, (operator,), load_backend(self.backend, {}).name)

    def push(self, *rows: tuple[str, str, int]) -> None:
        self.harness.push_all(rows)
        for row in rows:
            self.oracle.push(row)

    def trigger(self, full: bool = False) -> CheckpointRequest:
        """Take a checkpoint with the running epoch; it is pending from now on."""
        asked = SnapshotTrigger(kind=CheckpointKind.FULL if full else CheckpointKind.CONFIGURED)
        request = self.coordinator.trigger(asked, self.harness.epoch + 1, self.clock())
        assert request is not None
        number = request.checkpoint_id
        self.written[number] = self.harness.checkpoint(request, self.storage.writer(number, self.attempt))
        self.oracles[number] = self.oracle.copy()
        return request

    def complete(self, number: int) -> CompletedCheckpoint:
        assert self.coordinator.acknowledge(number, self.written[number]) is AcknowledgeResult.SUCCESS
        completed = self.coordinator.complete(number)
        assert completed is not None
        self._tell()
        return completed

    def abort(self, number: int) -> None:
        self.coordinator.abort(number, CheckpointFailureReason.CHECKPOINT_DECLINED)
        self._tell()

    def _tell(self) -> None:
        for notification in self.coordinator.take_notifications():
            if notification.kind.name == "COMPLETE":
                newest = next(c for c in self.store.all() if c.checkpoint_id == notification.checkpoint_id)
                self.harness.notify_checkpoint_complete(notification.checkpoint_id, newest.metadata.epoch)
            else:
                self.harness.notify_checkpoint_aborted(notification.checkpoint_id)

    def restored(self, completed: CompletedCheckpoint, **options: Any) -> KeyedOperatorHarness:
        self.storage.verify(completed.metadata)
        snapshot = HarnessSnapshot.of_checkpoint(completed.metadata, self.storage.reader(), self.operator_id)
        return KeyedOperatorHarness.restore(
            snapshot, Everything(), first, Types.STRING(), backend=self.backend, **options
        )

    def check(self, completed: CompletedCheckpoint) -> None:
        """What is restored of a checkpoint is what the oracle had when it was taken."""
        with self.restored(completed) as harness:
            self.oracles[completed.checkpoint_id].check_state(harness)

    def fail(self) -> None:
        """A new attempt from the newest readable checkpoint."""
        self.harness.close()
        chosen = self.coordinator.select_for_restore()
        if chosen is None:
            self.oracle = Oracle()
            self.harness = KeyedOperatorHarness(
                Everything(), first, Types.STRING(), backend=self.backend, clock=self.clock
            )
            self.harness.push_all(FILLER)
        else:
            self.oracle = self.oracles[chosen.checkpoint_id].copy()
            self.harness = self.restored(chosen, clock=self.clock)
        self.attempt += 1
        self.coordinator.start_attempt(self.attempt, chosen, self.facts())


@pytest.fixture(params=["heap", "lmdb", LMDB_IMAGE, "rocksdb"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["memory", "files"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> CheckpointStorage:
    if request.param == "memory":
        return MemoryCheckpointStorage()
    return FileCheckpointStorage(str(tmp_path), "job", inline_threshold=0)


def consists_of(completed: CompletedCheckpoint, deltas: int) -> bool:
    return is_chain(completed.metadata.operators[0].subtasks[0].keyed, deltas)


def two_pending(job: Job) -> tuple[CompletedCheckpoint, int, int]:
    """A completed base, and two checkpoints whose deltas both build on it."""
    job.push(("key-1", "add", 1), ("key-2", "set", 1), ("key-3", "put", 1))
    base = job.complete(job.trigger().checkpoint_id)
    job.push(("key-1", "add", 2), ("key-2", "clear", 0), ("key-4", "event", 7))
    one = job.trigger()
    job.push(("key-1", "add", 3), ("key-3", "remove", 1), ("key-2", "set", 9))
    two = job.trigger()
    assert one.base_epoch == two.base_epoch == base.metadata.epoch
    return base, one.checkpoint_id, two.checkpoint_id


@pytest.mark.parametrize("order", ["first then second", "second subsumes first", "first aborted", "second aborted"])
def test_two_checkpoints_at_once(backend: str, storage: CheckpointStorage, order: str) -> None:
    job = Job(backend, storage)
    base, one, two = two_pending(job)
    completed = [base]
    if order == "first then second":
        completed += [job.complete(one), job.complete(two)]
    elif order == "second subsumes first":
        completed.append(job.complete(two))
        assert job.coordinator.acknowledge(one, job.written[one]) is AcknowledgeResult.DISCARDED
    elif order == "first aborted":
        job.abort(one)
        completed.append(job.complete(two))
    else:
        completed.append(job.complete(one))
        job.abort(two)
    assert all(consists_of(c, 1) for c in completed[1:])
    for each in completed:
        job.check(each)
    job.push(("key-1", "add", 4), ("key-5", "set", 5))
    later = job.trigger()
    assert later.base_epoch == completed[-1].metadata.epoch
    last = job.complete(later.checkpoint_id)
    assert consists_of(last, 2)
    job.check(last)
    job.harness.close()


def test_a_checkpoint_triggered_while_an_older_one_is_pending_and_another_completed(
    backend: str, storage: CheckpointStorage
) -> None:
    job = Job(backend, storage)
    _, one, two = two_pending(job)
    completed = job.complete(one)
    job.check(completed)
    job.push(("key-1", "clear", 0))
    three = job.trigger()
    assert three.base_epoch == completed.metadata.epoch
    job.check(job.complete(two))
    job.push(("key-1", "add", 8))
    job.check(job.complete(three.checkpoint_id))
    job.check(job.complete(job.trigger().checkpoint_id))
    job.harness.close()


@pytest.mark.parametrize("fate", ["completed", "aborted", "completed after the delta behind it was triggered"])
def test_a_full_image_between_two_deltas(backend: str, storage: CheckpointStorage, fate: str) -> None:
    job = Job(backend, storage)
    job.push(("key-1", "add", 1), ("key-2", "set", 1), ("key-3", "put", 1))
    job.complete(job.trigger().checkpoint_id)
    job.push(("key-1", "add", 2), ("key-2", "clear", 0))
    delta = job.complete(job.trigger().checkpoint_id)
    job.push(("key-1", "clear", 0), ("key-3", "remove", 1), ("key-4", "event", 7))
    image = job.trigger(full=True)
    if fate == "completed":
        job.complete(image.checkpoint_id)
    elif fate == "aborted":
        job.abort(image.checkpoint_id)
    job.push(("key-1", "add", 3), ("key-4", "set", 4), ("key-2", "set", 9))
    behind = job.trigger()
    if fate.endswith("triggered"):
        assert consists_of(job.complete(image.checkpoint_id), 0)
    # A delta builds on what was complete when it was triggered, and on nothing that came to be later.
    built_on_image = fate == "completed"
    assert behind.base_epoch == (image.epoch if built_on_image else delta.metadata.epoch)
    last = job.complete(behind.checkpoint_id)
    assert consists_of(last, 1 if built_on_image else 2)
    for kept in job.store.all():
        job.check(kept)
    job.fail()
    job.push(("key-1", "add", 5))
    job.check(job.complete(job.trigger().checkpoint_id))
    job.harness.close()


def test_aborted_then_completed_then_restored_then_again(backend: str, storage: CheckpointStorage) -> None:
    job = Job(backend, storage, num_retained=1)
    for _ in range(2):
        job.push(("key-1", "add", 1), ("key-2", "set", 1), ("key-3", "put", 1))
        job.abort(job.trigger().checkpoint_id)
        job.push(("key-1", "add", 2), ("key-2", "clear", 0), ("key-5", "event", 9))
        completed = job.complete(job.trigger().checkpoint_id)
        job.push(("key-1", "add", 3), ("key-3", "remove", 1))
        job.abort(job.trigger().checkpoint_id)
        assert job.store.all() == [completed]
        job.fail()
        job.oracle.check_state(job.harness)
    job.harness.close()


def test_the_backend_changes_with_an_attempt(storage: CheckpointStorage) -> None:
    job = Job("heap", storage)
    job.push(("key-1", "add", 1))
    job.complete(job.trigger().checkpoint_id)
    job.backend = "lmdb"
    job.fail()
    job.push(("key-1", "add", 2))
    first_on_lmdb = job.complete(job.trigger().checkpoint_id)
    assert consists_of(first_on_lmdb, 0)
    job.check(first_on_lmdb)
    job.push(("key-1", "add", 3))
    assert consists_of(job.complete(job.trigger().checkpoint_id), 1)
    job.harness.close()


@pytest.mark.parametrize("num_retained", [1, 3])
@pytest.mark.parametrize("seed", range(3))
def test_any_course_of_pending_checkpoints_and_failures(
    backend: str, storage: CheckpointStorage, seed: int, num_retained: int
) -> None:
    chance = random.Random(seed)
    job = Job(backend, storage, num_retained)
    pending: list[int] = []
    for _ in range(60):
        move = chance.choice(["rows", "rows", "trigger", "trigger", "complete", "abort", "epoch", "fail"])
        if move == "rows":
            job.push(*(random_row(chance, 100) for _ in range(8)))
        elif move == "trigger" and len(pending) < 3:
            pending.append(job.trigger(full=chance.random() < 0.2).checkpoint_id)
        elif move == "complete" and pending:
            number = chance.choice(pending)
            job.check(job.complete(number))
            pending = [p for p in pending if p > number]
        elif move == "abort" and pending:
            job.abort(pending.pop(chance.randrange(len(pending))))
        elif move == "epoch":
            job.harness.end_epoch()
            if chance.random() < 0.5:
                job.harness.forget_live_objects()
        elif move == "fail" and chance.random() < 0.5:
            job.fail()
            pending.clear()
        job.harness.take_output()
    for kept in job.store.all():
        job.check(kept)
    job.harness.close()
