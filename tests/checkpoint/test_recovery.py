"""Damage of stored checkpoints: never wrong state, never repeated output, never silence."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.checkpoint.coordinator import CheckpointCoordinator
from holdfast.checkpoint.recovery import COMMITS_BEGUN_THROUGH
from holdfast.checkpoint.services import JobServices
from holdfast.errors import CheckpointError, CorruptFileError, StorageError
from tests.checkpoint.samples import JOB_ID, DictJob

OPTION = r"holdfast\.recovery\.accept-repeated-output"


def three_checkpoints(root: Path, full: bool = False) -> list[list[dict[str, int]]]:
    """The states of checkpoints 1, 2 and 3, all retained; with ``full``, no two share a file."""
    job = DictJob(root, num_retained=3)
    job.run_epoch([(subtask, "large", 10**200) for subtask in (0, 1)] if not full else ())
    states = []
    for number in (1, 2, 3):
        if full:
            job.coordinator.force_full_next()
        job.checkpoint([(0, f"first-{number}", number), (1, f"second-{number}", number)])
        states.append([dict(part) for part in job.state])
    return states


def flips(root: Path, copy: Path, paths: list[str]) -> Iterator[tuple[str, int]]:
    """One after the other, a copy of the job's directory for each damaged byte of the named files."""
    for path in paths:
        original = (root / JOB_ID / path).read_bytes()
        # Every byte of the format is tested with the format; each seventh one here.
        for position in range(0, len(original), 7 if path.endswith("_metadata") else 1):
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(root, copy, copy_function=os.link)
            damaged = bytearray(original)
            damaged[position] ^= 1 << (position % 8)
            (copy / JOB_ID / path).unlink()
            (copy / JOB_ID / path).write_bytes(bytes(damaged))
            yield path, position


def files_of_newest(root: Path) -> list[str]:
    job = root / JOB_ID
    own = [str(path.relative_to(job)) for path in (job / "chk-3").iterdir()]
    return sorted([*own, *(str(path.relative_to(job)) for path in job.glob("shared/*-3-*"))])


class TestEveryByteOfTheNewest:
    @pytest.fixture(autouse=True)
    def quick(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Thousands of small jobs: what a crash of the host would leave is not asked here."""
        monkeypatch.setattr(os, "fsync", lambda descriptor: None)

    def test_the_one_before_is_used(self, tmp_path: Path) -> None:
        states = three_checkpoints(tmp_path / "job", full=True)
        paths = files_of_newest(tmp_path / "job")
        assert [path.partition("/")[0] for path in paths] == ["chk-3"] * 3 + ["shared"] * 2
        for path, position in flips(tmp_path / "job", tmp_path / "copy", paths):
            job = DictJob(tmp_path / "copy", num_retained=3)
            assert job.state == states[1], (path, position)
            assert [kept.checkpoint_id for kept in job.store.all()] == [1, 2]

    @pytest.mark.parametrize("done", [False, True])
    def test_after_its_commit_had_begun_the_file_is_named(self, tmp_path: Path, done: bool) -> None:
        states = three_checkpoints(tmp_path / "job", full=True)
        coordinator = DictJob(tmp_path / "job", num_retained=3).coordinator
        coordinator.begin_commit(3)
        if done:
            coordinator.committed(3)
        paths = files_of_newest(tmp_path / "job")
        marker = "chk-3/_committed" if done else "chk-3/_committing"
        assert marker in paths
        for path, position in flips(tmp_path / "job", tmp_path / "copy", paths):
            if path == marker:  # its content does not matter, it is there
                assert DictJob(tmp_path / "copy", num_retained=3).state == states[2]
                continue
            with pytest.raises(CorruptFileError, match=OPTION) as caught:
                DictJob(tmp_path / "copy", num_retained=3)
            assert caught.value.path == str(tmp_path / "copy" / JOB_ID / path), (path, position)


class TestChains:
    def test_damage_of_a_shared_base_damages_all_and_is_an_error(self, tmp_path: Path) -> None:
        three_checkpoints(tmp_path)
        victim = next((tmp_path / JOB_ID / "shared").glob("1-1-*"))
        victim.write_bytes(victim.read_bytes()[:-1])
        assert len(list((tmp_path / JOB_ID / "shared").iterdir())) == 6
        for _ in range(2):  # the second driver finds what the first found: nothing was removed
            with pytest.raises(CheckpointError, match=r"none of the 3 completed checkpoints can be read") as caught:
                DictJob(tmp_path, num_retained=3)
            assert str(victim) in str(caught.value)

    def test_damage_of_a_delta_leaves_what_came_before(self, tmp_path: Path) -> None:
        states = three_checkpoints(tmp_path)
        for victim in (tmp_path / JOB_ID / "shared").glob("1-2-*"):
            victim.unlink()
        job = DictJob(tmp_path, num_retained=3)
        assert job.state == states[0]
        assert {kept.checkpoint_id for kept in job.store.all()} == {1}


class TestTheEnd:
    def test_a_job_that_could_not_recover_keeps_its_checkpoints(self, tmp_path: Path) -> None:
        three_checkpoints(tmp_path, full=True)
        job = DictJob(tmp_path, num_retained=3)
        job.coordinator.begin_commit(3)
        (tmp_path / JOB_ID / "chk-3/_metadata").write_bytes(b"")
        with pytest.raises(CorruptFileError):
            job.restart()
        before = job.paths()
        job.coordinator.shut_down(delete_checkpoints=True)
        assert job.paths() == before

    def test_a_job_that_never_started_keeps_its_checkpoints(self, tmp_path: Path) -> None:
        three_checkpoints(tmp_path)
        job = DictJob(tmp_path, num_retained=3)
        before = job.paths()
        unused = CheckpointCoordinator(
            job.policy, job.facts(), job.storage, JobServices.local(job.storage, job.store), job.clock
        )
        unused.shut_down(delete_checkpoints=True)
        assert job.paths() == before


class TestGoingBack:
    def test_it_is_reported(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        three_checkpoints(tmp_path, full=True)
        (tmp_path / JOB_ID / "chk-3/_metadata").write_bytes(b"")
        with caplog.at_level(logging.ERROR):
            DictJob(tmp_path, num_retained=3)
        assert "Checkpoint 3 is damaged and left behind" in caplog.text
        assert "chk-3/_metadata" in caplog.text

    def test_what_was_left_behind_never_comes_back(self, tmp_path: Path) -> None:
        """Its transactions are aborted when an earlier checkpoint is restored, so it must not be restored later."""
        states = three_checkpoints(tmp_path, full=True)
        victim = next((tmp_path / JOB_ID / "shared").glob("1-3-*"))
        content = victim.read_bytes()
        victim.unlink()
        DictJob(tmp_path, num_retained=3)
        victim.write_bytes(content)
        assert DictJob(tmp_path, num_retained=3).state == states[1]

    def test_deltas_build_on_what_was_restored(self, tmp_path: Path) -> None:
        three_checkpoints(tmp_path, full=True)
        (tmp_path / JOB_ID / "chk-3/_metadata").write_bytes(b"")
        job = DictJob(tmp_path, num_retained=3)
        completed = job.checkpoint([(0, "new", 1)])
        job.storage.verify(completed.metadata)
        assert DictJob(tmp_path, num_retained=3).state == job.state

    def test_an_older_damaged_one_does_not_matter(self, tmp_path: Path) -> None:
        states = three_checkpoints(tmp_path, full=True)
        (tmp_path / JOB_ID / "chk-1/_metadata").write_bytes(b"")
        job = DictJob(tmp_path, num_retained=3)
        assert job.state == states[2]
        assert [kept.checkpoint_id for kept in job.store.all()] == [2, 3]
        assert not any(path.startswith("chk-1/") for path in job.paths())

    def test_a_storage_that_cannot_be_reached_is_no_damage(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        three_checkpoints(tmp_path)
        job = DictJob(tmp_path, num_retained=3)

        def unreachable(metadata: object) -> None:
            raise StorageError("cannot read: connection refused")

        monkeypatch.setattr(job.storage, "verify", unreachable)
        with pytest.raises(StorageError, match="connection refused"):
            job.restart()
        assert len(job.store.all()) == 3


class TestCommits:
    def test_repeats_can_be_accepted(self, tmp_path: Path) -> None:
        states = three_checkpoints(tmp_path, full=True)
        DictJob(tmp_path, num_retained=3).coordinator.begin_commit(3)
        (tmp_path / JOB_ID / "chk-3/_metadata").write_bytes(b"")
        job = DictJob.__new__(DictJob)
        with pytest.raises(CorruptFileError, match=OPTION):
            job.__init__(tmp_path, num_retained=3)  # type: ignore[misc]  # made anew
        job.new_driver(accept_repeated_output=True)
        assert job.state == states[1]
        assert DictJob(tmp_path, num_retained=3).state == states[1]

    def test_lost_metadata_of_a_checkpoint_that_was_published(self, tmp_path: Path) -> None:
        three_checkpoints(tmp_path, full=True)
        DictJob(tmp_path, num_retained=3).coordinator.begin_commit(3)
        (tmp_path / JOB_ID / "chk-3/_metadata").unlink()
        told = rf"checkpoint 3 may have been published.*{JOB_ID}/chk-3/_metadata, is missing.*{OPTION}"
        with pytest.raises(CheckpointError, match=told):
            DictJob(tmp_path, num_retained=3)

    def test_lost_metadata_of_one_that_was_not_published(self, tmp_path: Path) -> None:
        states = three_checkpoints(tmp_path, full=True)
        (tmp_path / JOB_ID / "chk-3/_metadata").unlink()
        assert DictJob(tmp_path, num_retained=3).state == states[1]

    def test_the_next_checkpoint_remembers_what_was_published(self, tmp_path: Path) -> None:
        """The record of checkpoint 2 is lost, and 2 and 3 are damaged: 3 still tells that 2 was published."""
        job = DictJob(tmp_path, num_retained=3)
        job.checkpoint([(0, "key", 1)])
        job.coordinator.force_full_next()
        job.checkpoint([(0, "key", 2)])
        job.coordinator.begin_commit(2)
        job.coordinator.force_full_next()
        assert job.checkpoint([(0, "key", 3)]).metadata.properties[COMMITS_BEGUN_THROUGH] == 2
        folder = tmp_path / JOB_ID
        (folder / "chk-2/_committing").unlink()
        for number in (2, 3):
            next((folder / "shared").glob(f"1-{number}-*")).unlink()
        with pytest.raises(CorruptFileError, match=r"checkpoint 2 is damaged"):
            DictJob(tmp_path, num_retained=3)

    def test_a_new_driver_remembers_what_was_published(self, tmp_path: Path) -> None:
        job = DictJob(tmp_path, num_retained=3)
        job.checkpoint()
        job.coordinator.begin_commit(1)
        job.coordinator.committed(1)
        assert DictJob(tmp_path, num_retained=3).checkpoint().metadata.properties[COMMITS_BEGUN_THROUGH] == 1

    def test_only_completed_checkpoints_are_committed(self, tmp_path: Path) -> None:
        job = DictJob(tmp_path)
        request = job.run_epoch(checkpoint=True)
        assert request is not None
        with pytest.raises(CheckpointError, match="must not be committed"):
            job.coordinator.begin_commit(request.checkpoint_id)


def test_a_job_without_checkpoints_starts_empty(tmp_path: Path) -> None:
    job = DictJob(tmp_path)
    job.run_epoch([(0, "a", 1)])
    job.restart()
    assert job.state == job.empty()
    assert job.coordinator.select_for_restore() is None
