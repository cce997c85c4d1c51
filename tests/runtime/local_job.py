"""A job without Spark: every task of every level in this process, through the same steps as on Spark."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Collection, Sequence
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from holdfast.connectors.discard import DiscardSink
from holdfast.graph.planner import plan_job
from holdfast.runtime.batch import Batch
from holdfast.runtime.envelope import COORDINATOR_EDGE, Envelope
from holdfast.runtime.epoch import Acknowledgement, EpochSpec, RestoredJob, senders_of
from holdfast.runtime.plan import JobPlan, TaskOptions
from holdfast.runtime.sink import TransactionName
from holdfast.runtime.task import TaskRun, read_acknowledgement
from holdfast.spark.acceptance import accept_epoch
from holdfast.state.backends import load_backend
from holdfast.state.handles import CheckpointRequest, OperatorRecord, SnapshotType
from holdfast.state.snapshot_files import InlineSnapshotReader, MemorySnapshotWriter
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


def plan_of(program: Program, directory: Path, backend: str = "heap", parallelism: int = 2) -> JobPlan:
    options = TaskOptions(local_dir=str(directory))
    return plan_job(program.build(parallelism), load_backend(backend, {}), options).plan


def run_tasks(
    plan: JobPlan,
    spec: EpochSpec,
    restored: RestoredJob | None,
    clock: Callable[[], int],
    extra: Sequence[Envelope] = (),
    repeated: Collection[tuple[int, int]] = (),
) -> list[Acknowledgement]:
    """All tasks of one epoch, level after level. ``extra`` envelopes enter level 1 beside those of level 0.

    Envelopes reach the next level in the order in which Spark sorts them, in whatever order they were sent. Tasks
    (level, slot) that are ``repeated`` run twice, and nobody sees what their first execution sent.
    """
    arriving: list[Envelope] = []
    for level in plan.levels:
        leaving: list[Envelope] = []
        arriving += extra if level == 1 else []
        random.Random(level).shuffle(arriving)
        senders = senders_of(level, plan.levels, plan.slots, spec.partitions)
        for slot in range(plan.slots):
            mine = sorted((e for e in arriving if e.slot == slot), key=lambda e: (e.edge, e.channel, e.number))
            for _ in range(2 if (level, slot) in repeated else 1):
                task = TaskRun(plan, level, slot, spec, lambda: restored, clock)
                sent = list(task.run((copy(e) for e in mine), senders))
            leaving += sent
        arriving = leaving
    return [read_acknowledgement(bytes(memoryview(e.payload))) for e in arriving if e.edge == COORDINATOR_EDGE]


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
