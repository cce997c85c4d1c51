"""Stories of checkpoints, on files and in memory, with a job that really writes and reads snapshots."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.checkpoint.completed import CompletedCheckpoint
from holdfast.checkpoint.notifications import Notification, NotificationKind
from holdfast.checkpoint.pending import AcknowledgeResult
from holdfast.checkpoint.policy import CheckpointPolicy
from holdfast.checkpoint.reasons import CheckpointFailureReason as Reason
from holdfast.checkpoint.savepoint import SavepointLocation
from holdfast.checkpoint.snapshot_triggers import SnapshotTrigger
from holdfast.checkpoint.statistics import CheckpointStatus
from holdfast.checkpoint.storage import open_snapshot
from holdfast.errors import CheckpointError, LeadershipLostError, StorageError
from holdfast.state.handles import CheckpointRequest, SnapshotType
from tests.checkpoint.samples import OPERATOR, DictJob, snapshot


@pytest.fixture(params=["file", "memory"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return tmp_path if request.param == "file" else None


def triggered(job: DictJob, **how: bool) -> CheckpointRequest:
    request = job.run_epoch([(0, "k", job.epoch)], checkpoint=True, **how)
    assert request is not None
    return request


class TestTriggering:
    def test_a_checkpoint_is_taken_when_it_is_due(self, root: Path | None) -> None:
        job = DictJob(root, CheckpointPolicy(interval_ms=100))
        due = job.coordinator.next_due()
        assert due is not None and 0 <= due - job.clock.now <= 100
        job.clock.now = due - 1
        assert job.run_epoch() is None
        job.clock.now = due
        request = job.run_epoch()
        assert request is not None
        assert (request.checkpoint_id, request.epoch, request.timestamp, request.attempt) == (1, 2, due, 1)
        assert (request.base_epoch, request.full) == (None, frozenset())

    def test_a_restart_waits_for_the_pause_only(self, root: Path | None) -> None:
        job = DictJob(root, CheckpointPolicy(interval_ms=1000, min_pause_ms=7))
        job.restart()
        assert job.coordinator.next_due() == job.clock.now + 7

    def test_one_at_a_time_unless_forced(self, root: Path | None) -> None:
        job = DictJob(root, CheckpointPolicy(interval_ms=10))
        triggered(job)
        job.clock.now += 1000
        assert job.run_epoch() is None
        assert triggered(job).checkpoint_id == 2

    def test_no_interval_means_only_forced_ones(self, root: Path | None) -> None:
        job = DictJob(root, CheckpointPolicy())
        job.clock.now += 10**9
        assert job.run_epoch() is None
        assert job.coordinator.next_due() is None
        assert triggered(job).checkpoint_id == 1

    def test_deltas_are_asked_for_from_the_newest_completed(self, root: Path | None) -> None:
        job = DictJob(root)
        first = job.checkpoint([(0, "k", 1), (1, "k", 1)])
        job.run_epoch([(0, "k", 2)])
        request = triggered(job)
        assert request.base_epoch == first.metadata.epoch
        assert request.full == frozenset()

    def test_without_incremental_every_image_is_full(self, root: Path | None) -> None:
        job = DictJob(root, CheckpointPolicy(incremental=False))
        job.checkpoint([(0, "k", 1)])
        assert triggered(job).base_epoch is None

    @pytest.mark.parametrize("how", ["argument", "flag"])
    def test_a_full_image_can_be_asked_for(self, root: Path | None, how: str) -> None:
        job = DictJob(root)
        job.checkpoint([(0, "k", 1)])
        if how == "flag":
            job.coordinator.force_full_next()
        request = triggered(job, full=how == "argument")
        assert request.base_epoch is None
        job.acknowledge_all(request)
        completed = job.coordinator.complete(request.checkpoint_id)
        assert completed is not None
        images = [part.keyed for part in completed.metadata.operators[0].subtasks if part.keyed is not None]
        assert {file.checkpoint_id for image in images for file in image.files} == {request.checkpoint_id}
        assert triggered(job).base_epoch == request.epoch

    def test_nothing_is_triggered_before_an_attempt(self, tmp_path: Path) -> None:
        job = DictJob(tmp_path)
        job.coordinator._attempt = None
        with pytest.raises(CheckpointError, match="start_attempt"):
            triggered(job)


class TestCompletion:
    def test_what_completed_can_be_restored(self, root: Path | None) -> None:
        job = DictJob(root)
        completed = job.checkpoint([(0, "a", 1), (1, "b", 2)])
        job.run_epoch([(0, "a", 100)])
        assert job.read(completed.metadata, job.storage.reader()) == [{"a": 1}, {"b": 2}]
        job.restart()
        assert job.state == [{"a": 1}, {"b": 2}]

    def test_metadata_tells_the_job(self, tmp_path: Path) -> None:
        job = DictJob(tmp_path)
        request = triggered(job)
        job.acknowledge_all(request)
        job.clock.now += 50
        completed = job.coordinator.complete(request.checkpoint_id, {"watermark": 17})
        assert completed is not None
        stored, _ = open_snapshot(completed.location)
        assert stored == completed.metadata
        assert (stored.job_id, stored.job_name, stored.attempt, stored.epoch) == ("job-1", "a job", 1, 1)
        assert stored.completion_timestamp - stored.trigger_timestamp == 50
        assert (stored.operators[0].uid, stored.operators[0].parallelism) == ("mapper-id", 2)
        assert stored.properties["watermark"] == 17

    def test_all_must_have_acknowledged(self, root: Path | None) -> None:
        job = DictJob(root)
        request = triggered(job)
        job.coordinator.acknowledge(request.checkpoint_id, job.write(request, 0))
        assert job.coordinator.ready() == []
        with pytest.raises(CheckpointError, match=rf"not acknowledged by \[\('{OPERATOR}', 1\)\]"):
            job.coordinator.complete(request.checkpoint_id)
        job.coordinator.acknowledge(request.checkpoint_id, job.write(request, 1))
        assert job.coordinator.ready() == [request.checkpoint_id]
        assert job.coordinator.complete(request.checkpoint_id) is not None
        with pytest.raises(CheckpointError, match="not pending"):
            job.coordinator.complete(request.checkpoint_id)

    def test_notifications_are_taken_once(self, root: Path | None) -> None:
        job = DictJob(root)
        aborted = triggered(job)
        job.coordinator.abort(aborted.checkpoint_id, Reason.CHECKPOINT_SUBSUMED)
        job.checkpoint()
        assert job.coordinator.take_notifications() == [
            Notification(NotificationKind.ABORTED, 1),
            Notification(NotificationKind.COMPLETE, 2),
        ]
        assert job.coordinator.take_notifications() == []

    def test_an_older_pending_one_is_subsumed(self, root: Path | None) -> None:
        job = DictJob(root)
        older, newer = triggered(job), triggered(job)
        job.acknowledge_all(newer)
        job.coordinator.complete(newer.checkpoint_id)
        assert [kind.value for kind, _ in job.coordinator.take_notifications()] == ["aborted", "complete"]
        assert job.coordinator.acknowledge(older.checkpoint_id, job.write(older, 0)) is AcknowledgeResult.DISCARDED
        assert job.coordinator.job_failure is None


class TestAcknowledgements:
    def test_results(self, root: Path | None) -> None:
        job = DictJob(root)
        request = triggered(job)
        first = job.write(request, 0)
        acknowledge = job.coordinator.acknowledge
        assert acknowledge(request.checkpoint_id, first) is AcknowledgeResult.SUCCESS
        assert acknowledge(request.checkpoint_id, first) is AcknowledgeResult.DUPLICATE
        assert acknowledge(request.checkpoint_id, snapshot(99)) is AcknowledgeResult.UNKNOWN
        assert acknowledge(77, first) is AcknowledgeResult.UNKNOWN
        job.coordinator.abort(request.checkpoint_id, Reason.CHECKPOINT_DECLINED)
        assert acknowledge(request.checkpoint_id, first) is AcknowledgeResult.DISCARDED

    def test_a_repeated_acknowledgement_does_not_cost_the_first_its_files(self, tmp_path: Path) -> None:
        job = DictJob(tmp_path)
        request = triggered(job)
        first = job.write(request, 0)
        for _ in range(3):
            job.coordinator.acknowledge(request.checkpoint_id, first)
        job.coordinator.acknowledge(request.checkpoint_id, job.write(request, 1))
        completed = job.coordinator.complete(request.checkpoint_id)
        assert completed is not None
        job.coordinator.acknowledge(request.checkpoint_id, first)
        job.storage.verify(completed.metadata)

    def test_files_of_a_late_acknowledgement_are_deleted(self, tmp_path: Path) -> None:
        job = DictJob(tmp_path)
        job.checkpoint([(0, "key", 12345)])
        before = job.paths()
        request = triggered(job)
        job.coordinator.abort(request.checkpoint_id, Reason.CHECKPOINT_EXPIRED)
        job.coordinator.acknowledge(request.checkpoint_id, job.write(request, 0))
        assert job.paths() == before


class TestFailures:
    def test_an_aborted_checkpoint_leaves_no_file(self, tmp_path: Path) -> None:
        job = DictJob(tmp_path)
        job.checkpoint([(0, "key", 12345), (1, "key", 12345)])
        before = job.paths()
        request = triggered(job)
        job.coordinator.acknowledge(request.checkpoint_id, job.write(request, 0))
        job.write(request, 1)  # written, not acknowledged
        assert len(job.paths()) > len(before)
        job.coordinator.abort(request.checkpoint_id, Reason.CHECKPOINT_DECLINED)
        assert job.paths() == before

    def test_what_comes_too_late_expires(self, root: Path | None) -> None:
        job = DictJob(root, CheckpointPolicy(timeout_ms=500))
        request = triggered(job)
        job.clock.now += 499
        assert job.coordinator.expire(job.clock.now) == []
        job.clock.now += 1
        assert job.coordinator.expire(job.clock.now) == [request.checkpoint_id]
        failed = job.coordinator.statistics.latest_failed
        assert failed is not None and failed.failure_reason is Reason.CHECKPOINT_EXPIRED
        assert f"2 subtasks are missing, the first is [('{OPERATOR}', 0)]" in str(failed.failure_message)

    def test_the_job_fails_beyond_the_tolerable_number(self, root: Path | None) -> None:
        job = DictJob(root, CheckpointPolicy(tolerable_failures=1))
        failures = []
        for _ in range(2):
            job.coordinator.abort(triggered(job).checkpoint_id, Reason.CHECKPOINT_DECLINED, "disk full")
            failures.append(job.coordinator.job_failure)
        tolerated, failure = failures
        assert tolerated is None
        assert failure is not None and failure.reason is Reason.CHECKPOINT_DECLINED
        assert str(failure).startswith("Exceeded checkpoint tolerable failure threshold.")
        assert "disk full" in str(failure)
        job.restart()
        assert job.coordinator.job_failure is None

    def test_a_failed_epoch_takes_all_pending_ones_with_it(self, root: Path | None) -> None:
        job = DictJob(root)
        requests = [triggered(job), triggered(job)]
        job.acknowledge_all(requests[0])
        job.coordinator.fail_epoch()
        assert job.coordinator.ready() == []
        assert job.coordinator.statistics.counts.failed == 2
        assert job.coordinator.job_failure is None

    def test_metadata_that_cannot_be_written_aborts(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        job = DictJob(tmp_path, CheckpointPolicy(tolerable_failures=1))
        job.checkpoint([(0, "key", 12345)])
        before = job.paths()
        request = triggered(job)
        job.acknowledge_all(request)

        def full(metadata: object) -> str:
            raise StorageError("cannot write _metadata: the disk is full")

        with monkeypatch.context() as patch:
            patch.setattr(job.storage, "write_metadata", full)
            assert job.coordinator.complete(request.checkpoint_id) is None
        failed = job.coordinator.statistics.latest_failed
        assert failed is not None and failed.failure_reason is Reason.FINALIZE_CHECKPOINT_FAILURE
        assert "the disk is full" in str(failed.failure_message)
        assert job.coordinator.job_failure is None
        assert job.paths() == before
        assert job.checkpoint().metadata.checkpoint_id == request.checkpoint_id + 1

    def test_a_store_that_fails_leaves_nothing_visible(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        job = DictJob(tmp_path)
        request = triggered(job)
        job.acknowledge_all(request)

        def fail(checkpoint: object) -> list[object]:
            raise StorageError("no connection")

        monkeypatch.setattr(job.store, "add", fail)
        assert job.coordinator.complete(request.checkpoint_id) is None
        assert job.paths() == set()

    def test_a_delta_that_does_not_fit_aborts(self, tmp_path: Path) -> None:
        job = DictJob(tmp_path)
        job.checkpoint([(0, "k", 1), (1, "k", 1)])
        delta = job.write(triggered(job), 0)
        job.coordinator.force_full_next()
        request = triggered(job)
        job.coordinator.acknowledge(request.checkpoint_id, delta)
        job.coordinator.acknowledge(request.checkpoint_id, job.write(request, 1))
        assert job.coordinator.complete(request.checkpoint_id) is None


class TestFilesOfCheckpoints:
    def test_only_what_retained_checkpoints_need_stays(self, tmp_path: Path) -> None:
        job = DictJob(tmp_path, num_retained=2, inline_threshold=0)
        keys = [(subtask, f"key-{number}", number) for subtask in (0, 1) for number in range(100)]
        job.checkpoint(keys)
        for number in range(200):
            job.checkpoint([(0, f"key-{number % 100}", -number), (1, "same", number)])
            retained = job.store.all()
            needed = {path for kept in retained for path in kept.files()}
            visible = {f"chk-{kept.checkpoint_id}/_metadata" for kept in retained}
            assert job.paths() == needed | visible
        assert len(job.store.all()) == 2
        assert job.coordinator.statistics.counts.completed == 201

    def test_chains_are_rebased(self, tmp_path: Path) -> None:
        job = DictJob(tmp_path, inline_threshold=0)
        job.checkpoint([(0, f"key-{number}", number) for number in range(100)])
        lengths = []
        for number in range(100):
            completed = job.checkpoint([(0, f"key-{n}", number) for n in range(20)])
            part = completed.metadata.operators[0].subtasks[0].keyed
            assert part is not None
            lengths.append(len(part.files))
            assert job.read(completed.metadata, job.storage.reader()) == job.state
        assert max(lengths) >= 3
        assert lengths.count(1) >= 10

    def test_a_delta_is_small(self, tmp_path: Path) -> None:
        job = DictJob(tmp_path)
        job.checkpoint([(0, f"key-{number}", number) for number in range(1000)])
        full = job.coordinator.statistics.latest_completed
        job.checkpoint([(0, f"key-{number}", -number) for number in range(10)])
        delta = job.coordinator.statistics.latest_completed
        assert full is not None and delta is not None
        assert delta.bytes_written < full.bytes_written / 50
        assert delta.state_size > full.state_size

    def test_the_base_of_a_pending_one_is_not_deleted(self, tmp_path: Path) -> None:
        """Two at once: the newer leans on a checkpoint that the older one, a full image, replaces."""
        job = DictJob(tmp_path, num_retained=1, inline_threshold=0)
        job.checkpoint([(0, "a", 1), (1, "b", 1)])
        older = triggered(job, full=True)
        newer = triggered(job)
        job.acknowledge_all(older)
        job.coordinator.complete(older.checkpoint_id)
        job.acknowledge_all(newer)
        completed = job.coordinator.complete(newer.checkpoint_id)
        assert completed is not None
        job.storage.verify(completed.metadata)
        assert job.read(completed.metadata, job.storage.reader()) == job.state
        assert job.paths() == completed.files() | {f"chk-{newer.checkpoint_id}/_metadata"}

    def test_a_new_attempt_sweeps_what_died(self, tmp_path: Path) -> None:
        job = DictJob(tmp_path)
        completed = job.checkpoint([(0, "key", 12345), (1, "key", 12345)])
        before = job.paths()
        job.write(triggered(job), 0)
        (tmp_path / "job-1/shared/notes").write_text("of a user")
        assert job.paths() != before
        job.new_driver()
        assert job.paths() == before | {"shared/notes"}
        job.storage.verify(completed.metadata)

    @pytest.mark.parametrize("delete", [False, True])
    def test_the_end(self, tmp_path: Path, delete: bool) -> None:
        job = DictJob(tmp_path, num_retained=2)
        job.checkpoint([(0, "key", 12345)])
        job.coordinator.begin_commit(1)
        job.checkpoint([(0, "key", 54321)])
        kept = job.paths()
        job.write(triggered(job), 0)
        job.coordinator.shut_down(delete_checkpoints=delete)
        assert job.paths() == (set() if delete else kept)
        assert job.coordinator.next_due() is None


class TestNumbers:
    def test_a_new_driver_continues_above_every_number(self, tmp_path: Path) -> None:
        job = DictJob(tmp_path)
        job.checkpoint([(0, "key", 12345)])
        request = triggered(job)
        job.write(request, 0)
        job.new_driver()
        assert job.checkpoint().checkpoint_id == request.checkpoint_id + 1

    def test_attempts_continue_above_what_was_restored(self, root: Path | None) -> None:
        job = DictJob(root)
        for _ in range(3):
            job.checkpoint()
        job.restart()
        assert job.checkpoint().checkpoint_id == 4


def test_statistics(root: Path | None) -> None:
    job = DictJob(root)
    for number in range(12):
        request = triggered(job)
        job.clock.now += 5
        job.acknowledge_all(request)
        job.clock.now += 5
        if number % 3 == 2:
            job.coordinator.abort(request.checkpoint_id, Reason.CHECKPOINT_SUBSUMED)
        else:
            job.coordinator.complete(request.checkpoint_id)
    running = triggered(job)
    statistics = job.coordinator.statistics
    counts = statistics.counts
    assert (counts.total, counts.completed, counts.failed, counts.in_progress) == (13, 8, 4, 1)
    assert [entry.checkpoint_id for entry in statistics.history] == list(range(4, 14))
    assert statistics.history[-1].status is CheckpointStatus.IN_PROGRESS
    assert statistics.history[-1].duration is None
    latest = statistics.latest_completed
    assert latest is not None and latest.checkpoint_id == 11
    assert (latest.duration, latest.num_subtasks, len(latest.subtasks)) == (10, 2, 2)
    assert latest.subtasks[OPERATOR, 1].duration == 5
    assert latest.latest_acknowledgement == latest.trigger_timestamp + 5
    assert statistics.latest_failed is not None and statistics.latest_failed.checkpoint_id == 12
    job.restart()
    assert statistics.latest_restored is not None and statistics.latest_restored.checkpoint_id == 11
    assert statistics.counts.restored == 1
    assert statistics.counts.in_progress == 0
    assert running.checkpoint_id == 13


class TestLostLeadership:
    """The leadership is lost while a completion is being recorded, and nobody can tell whether it was."""

    def lose(self, job: DictJob, recorded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
        request = job.run_epoch([(0, "b", 2)], checkpoint=True)
        assert request is not None
        job.acknowledge_all(request)
        add = job.store.add

        def lost(checkpoint: CompletedCheckpoint) -> None:
            if recorded:
                add(checkpoint)
            raise LeadershipLostError("another driver was elected")

        monkeypatch.setattr(job.store, "add", lost)
        with pytest.raises(LeadershipLostError):
            job.coordinator.complete(request.checkpoint_id)
        job.coordinator.abandon()

    def test_what_may_have_been_completed_stays_whole(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        job = DictJob(tmp_path)
        job.checkpoint([(0, "a", 1)])
        self.lose(job, recorded=True, monkeypatch=monkeypatch)
        job.new_driver()
        assert job.state[0] == {"a": 1, "b": 2}

    @pytest.mark.parametrize("step", ["write_metadata", "add"])
    def test_one_that_another_driver_may_go_on_from_is_not_withdrawn(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
    ) -> None:
        """The storage does not answer for so long that the job is another driver's when it does."""
        job = DictJob(tmp_path)
        job.checkpoint([(0, "a", 1)])
        request = self.unanswered(job, step, LeadershipLostError("another driver has the job"), monkeypatch)
        with pytest.raises(LeadershipLostError):
            job.coordinator.complete(request.checkpoint_id)
        job.coordinator.abandon()
        monkeypatch.undo()
        job.new_driver()
        assert job.state[0] == {"a": 1, "b": 2}

    @pytest.mark.parametrize("step", ["write_metadata", "add"])
    def test_one_that_cannot_be_withdrawn_stays_whole(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
    ) -> None:
        job = DictJob(tmp_path, CheckpointPolicy(tolerable_failures=1))
        job.checkpoint([(0, "a", 1)])
        request = self.unanswered(job, step, StorageError("no connection"), monkeypatch)
        assert job.coordinator.complete(request.checkpoint_id) is None
        assert job.coordinator.statistics.counts.failed == 1
        monkeypatch.undo()
        job.storage.verify(job.storage.read_metadata(request.checkpoint_id))
        job.checkpoint([(0, "c", 3)])
        job.new_driver()
        assert job.state[0] == {"a": 1, "b": 2, "c": 3}

    def unanswered(
        self, job: DictJob, step: str, then: Exception, monkeypatch: pytest.MonkeyPatch
    ) -> CheckpointRequest:
        """A checkpoint of which one step is done, and fails all the same; ``then`` is what a look at the leadership
        comes to.
        """
        request = job.run_epoch([(0, "b", 2)], checkpoint=True)
        assert request is not None
        job.acknowledge_all(request)
        target = job.store if step == "add" else job.storage
        done = getattr(target, step)

        def check() -> None:
            raise then

        def answer_is_lost(what: object) -> None:
            done(what)
            monkeypatch.setattr(job.coordinator._leadership, "check", check)
            raise StorageError("timed out")

        monkeypatch.setattr(target, step, answer_is_lost)
        return request

    @pytest.mark.parametrize("looks", [0, 1], ids=["ahead-of-it", "behind-it"])
    def test_a_savepoint_is_not_told_of_when_another_driver_has_the_job(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looks: int
    ) -> None:
        job = DictJob(tmp_path)
        location = SavepointLocation.create(str(tmp_path / "savepoints"), "job")
        trigger = SnapshotTrigger(SnapshotType.SAVEPOINT, location=location)
        request = job.coordinator.trigger(trigger, 1, 0)
        job.acknowledge_all(request)
        left = [looks]

        def check() -> None:
            if not left[0]:
                raise LeadershipLostError("another driver has the job")
            left[0] -= 1

        monkeypatch.setattr(job.coordinator._leadership, "check", check)
        with pytest.raises(LeadershipLostError):
            job.coordinator.complete(request.checkpoint_id)
        job.coordinator.abandon()
        assert isinstance(trigger.outcome.exception(0), CheckpointError)
        assert (Path(location.path) / "_metadata").exists() == bool(looks)

    def test_whoever_waits_for_it_is_told(self, tmp_path: Path) -> None:
        job = DictJob(tmp_path)
        trigger = SnapshotTrigger()
        request = job.coordinator.trigger(trigger, 1, 0)
        assert request is not None
        before = job.paths()
        job.coordinator.abandon()
        assert isinstance(trigger.outcome.exception(0), CheckpointError)
        assert job.paths() == before
