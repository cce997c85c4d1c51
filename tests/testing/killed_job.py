"""A job with checkpoints in files that may be killed at any moment and goes on where its last checkpoint left it.

As a program: ``killed_job.py <directory> <steps> <backend>`` runs until that step has a checkpoint, and checks all that
the directory holds at its start and at its end.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

from holdfast.checkpoint.completed_store import FileCompletedCheckpointStore
from holdfast.checkpoint.coordinator import CheckpointCoordinator
from holdfast.checkpoint.job_facts import JobFacts, JobOperator
from holdfast.checkpoint.policy import CheckpointPolicy
from holdfast.checkpoint.services import JobServices
from holdfast.checkpoint.snapshot_triggers import SnapshotTrigger
from holdfast.checkpoint.storage import FileCheckpointStorage
from holdfast.common import Types
from holdfast.state import backends
from holdfast.state.backends import load_backend
from holdfast.state.keys import KEY_HASH
from holdfast.testing import HarnessSnapshot, KeyedOperatorHarness, ManualClock
from tests.state.stores import LMDB_IMAGE, entry_point_of_lmdb_image
from tests.testing.functions import Everything
from tests.testing.oracle import Oracle, random_row

RETAINED = 3


def first(row: Any) -> Any:
    return row[0]


def rows_of(step: int) -> list[tuple[str, str, int]]:
    chance = random.Random(step)
    return [random_row(chance, 100) for _ in range(4)]


def oracle_at(step: int) -> Oracle:
    oracle = Oracle()
    for number in range(1, step + 1):
        for row in rows_of(number):
            oracle.push(row)
    return oracle


class KilledJob:
    """One keyed operator. Every step is an epoch with a checkpoint that completes."""

    def __init__(self, directory: Path, backend: str) -> None:
        self.backend = backend
        self.directory = directory / "checkpoints"
        self.storage = FileCheckpointStorage(str(self.directory), "job", inline_threshold=0)
        self.store = FileCompletedCheckpointStore(self.storage, RETAINED)
        self.clock = ManualClock()
        policy = CheckpointPolicy(tolerable_failures=0)
        probe = self._harness()
        self.operator_id = probe.operator_id
        probe.close()
        operators = (JobOperator(self.operator_id, "Everything", 1, 128),)
        facts = JobFacts("job", "job", KEY_HASH, operators, load_backend(backend, {}).name)
        services = JobServices.local(self.storage, self.store)
        self.coordinator = CheckpointCoordinator(policy, facts, self.storage, services, self.clock, random.Random(1))
        chosen = self.coordinator.select_for_restore()
        self.step: int = 0 if chosen is None else chosen.metadata.properties["step"]
        self.attempt = _count(directory / "attempts")
        self.coordinator.start_attempt(self.attempt, chosen)
        self.harness = self._harness() if chosen is None else self._restored(chosen.metadata)
        if chosen is None:
            self.harness.push_all([(f"other-{n}", "set", n) for n in range(500)]).end_epoch()

    def run_step(self) -> None:
        self.step += 1
        self.harness.push_all(rows_of(self.step)).take_output()
        request = self.coordinator.trigger(SnapshotTrigger(), self.harness.epoch + 1, self.clock())
        assert request is not None
        number = request.checkpoint_id
        written = self.harness.checkpoint(request, self.storage.writer(number, self.attempt))
        self.coordinator.acknowledge(number, written)
        assert self.coordinator.complete(number, {"step": self.step}) is not None
        self.harness.notify_checkpoint_complete(number, request.epoch)

    def check(self) -> None:
        """Every retained checkpoint is whole and restores what was then."""
        for kept in self.store.all():
            self.storage.verify(kept.metadata)
            with self._restored(kept.metadata) as harness:
                oracle_at(kept.metadata.properties["step"]).check_state(harness)

    def orphans(self) -> set[str]:
        """Files that no retained checkpoint references, and such that are missing."""
        job = self.directory / "job"
        found = {str(path.relative_to(job)) for path in job.rglob("*") if path.is_file()}
        expected = {path for kept in self.store.all() for path in kept.files()}
        return found ^ (expected | {f"chk-{kept.checkpoint_id}/_metadata" for kept in self.store.all()})

    def _harness(self) -> KeyedOperatorHarness:
        return KeyedOperatorHarness(Everything(), first, Types.STRING(), backend=self.backend, clock=self.clock)

    def _restored(self, metadata: Any) -> KeyedOperatorHarness:
        snapshot = HarnessSnapshot.of_checkpoint(metadata, self.storage.reader(), self.operator_id)
        return KeyedOperatorHarness.restore(
            snapshot, Everything(), first, Types.STRING(), backend=self.backend, clock=self.clock
        )


def _count(path: Path) -> int:
    """How often the job was started."""
    with path.open("ab") as file:
        file.write(b".")
    return path.stat().st_size


def main() -> None:
    directory, steps = Path(sys.argv[1]), int(sys.argv[2])
    backends._BUILT_IN[LMDB_IMAGE] = entry_point_of_lmdb_image()
    job = KilledJob(directory, sys.argv[3])
    job.check()
    while job.step < steps:
        job.run_step()
    job.check()
    job.harness.close()
    assert not job.orphans(), job.orphans()


if __name__ == "__main__":
    main()
