"""A job without Spark: every task of every level in this process, through the same steps as on Spark."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from holdfast.connectors.discard import DiscardSink
from holdfast.graph.planner import plan_job
from holdfast.job.acceptance import accept_epoch
from holdfast.runtime.batch import Batch
from holdfast.runtime.envelope import Envelope
from holdfast.runtime.epoch import Acknowledgement, EpochSpec, RestoredJob
from holdfast.runtime.plan import JobPlan, TaskOptions
from holdfast.runtime.sink import TransactionName
from holdfast.state.backends import load_backend
from holdfast.state.handles import CheckpointRequest, OperatorRecord, SnapshotType
from holdfast.state.snapshot_files import InlineSnapshotReader, MemorySnapshotWriter
from holdfast.testing.tasks import run_tasks
from tests.graph.programs import Program


class ListSink(DiscardSink):
    """A handle is the rows themselves."""

    def begin(self, name: TransactionName) -> Any:
        return []

    def write(self, transaction: Any, batch: Batch) -> None:
        transaction.extend(batch.values)

    def pre_commit(self, transaction: Any) -> Any:
        return pickle.dumps(transaction)


def rows_of(acknowledgements: list[Acknowledgement]) -> list[Any]:
    """What all subtasks of all sinks wrote in an epoch."""
    return [row for a in acknowledgements for handle in a.transactions for row in pickle.loads(handle.handle)]


def plan_of(
    program: Program, directory: Path, backend: str = "heap", parallelism: int = 2, **settings: Any
) -> JobPlan:
    options = TaskOptions(local_dir=str(directory))
    return plan_job(program.build(parallelism, **settings), load_backend(backend, {}), options).plan


@dataclass
class LocalJob:
    """Runs the epochs of one attempt."""

    plan: JobPlan
    attempt: int = 1
    epoch: int = 0
    restored: RestoredJob | None = None
    clock: Callable[[], int] = lambda: 0
    rows_per_subtask: int = 2
    accepted: tuple[tuple[str, ...], ...] = ()
    restore_epoch: int = field(init=False)

    def __post_init__(self) -> None:
        self.restore_epoch = self.epoch

    def spec(self, **changes: Any) -> EpochSpec:
        spec = EpochSpec(
            attempt=self.attempt,
            epoch=self.epoch + 1,
            accepted=self.accepted,
            restore_epoch=self.restore_epoch,
            restored=self.restored is not None,
            rows_per_subtask=self.rows_per_subtask,
            max_millis=10_000,
            reader=InlineSnapshotReader(),
        )
        return spec if not changes else EpochSpec(**{**_fields(spec), **changes})

    def run_epoch(self, extra: Sequence[Envelope] = (), **changes: Any) -> list[Acknowledgement]:
        spec = self.spec(**changes)
        found = run_tasks(self.plan, spec, self.restored, self.clock, extra)
        own = [a for a in found if a.group == 0]
        self.accepted = accept_epoch(
            [
                msgspec.structs.replace(a, consumed={s: n for s, n in a.consumed.items() if s < self.plan.slots})
                for a in own
            ],
            spec.epoch,
            self.plan.levels,
            self.plan.slots,
            {},
        )
        self.epoch += 1
        return own

    def checkpoint(self, number: int, **changes: Any) -> RestoredJob:
        """One epoch with a full snapshot of everything."""
        request = CheckpointRequest(number, SnapshotType.CHECKPOINT, 0, self.attempt, self.epoch + 1)
        acknowledged = self.run_epoch(checkpoint=request, writer=MemorySnapshotWriter(), **changes)
        snapshots = [s for a in acknowledged for s in a.snapshots]
        records = tuple(
            OperatorRecord(
                o.operator_id,
                o.uid,
                o.name,
                o.parallelism,
                o.max_parallelism,
                tuple(sorted((s for s in snapshots if s.operator_id == o.operator_id), key=lambda s: s.subtask)),
            )
            for o in self.plan.operators()
        )
        return RestoredJob(number, self.epoch, records)


def _fields(spec: EpochSpec) -> dict[str, Any]:
    return {name: getattr(spec, name) for name in spec.__dataclass_fields__}
