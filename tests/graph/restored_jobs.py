"""Programs that are run, stored and restored without Spark, with the classes that do it there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from holdfast.checkpoint.restore_rules import match_operators
from holdfast.checkpoint.savepoint import SavepointLocation
from holdfast.checkpoint.storage import FileCheckpointStorage, open_snapshot
from holdfast.common import Configuration
from holdfast.datastream import StreamExecutionEnvironment
from holdfast.graph.facts_of_graph import job_facts
from holdfast.graph.job_graph import JobGraph, build_job_graph
from holdfast.graph.planner import plan_job
from holdfast.job.restore_point import restore_rules
from holdfast.runtime.epoch import Acknowledgement, RestoredJob
from holdfast.runtime.live_task import forget_live_tasks
from holdfast.runtime.plan import TaskOptions
from holdfast.state.backends import load_backend
from holdfast.state.handles import (
    CheckpointMetadata,
    CheckpointRequest,
    OperatorRecord,
    SavepointFormat,
    SnapshotType,
)
from holdfast.state.keys import KEY_HASH
from holdfast.state.snapshot_io import SnapshotWriter
from tests.runtime.local_job import LocalJob, rows_of

CHECKPOINT = "checkpoint"
#: What a job may be restored from.
FORMS = (CHECKPOINT, *(one.value for one in SavepointFormat))
#: Adds the program to an environment.
Build = Callable[[StreamExecutionEnvironment], None]


def environment(build: Build, parallelism: int = 2, **settings: Any) -> StreamExecutionEnvironment:
    given = {"parallelism.default": parallelism, "state.backend.type": "heap", **settings}
    env = StreamExecutionEnvironment(Configuration.from_dict(given))
    build(env)
    return env


def _graph(env: StreamExecutionEnvironment, adopted: dict[str, int] | None = None) -> JobGraph:
    settings = env.job_settings()
    return build_job_graph(env.get_stream_graph(), "job", "job", settings, settings.parallelism or 1, adopted)


class StoredJob:
    """A job of one environment, in epochs of this process. With ``path`` it starts from a checkpoint."""

    def __init__(self, env: StreamExecutionEnvironment, root: Path, path: str | None = None) -> None:
        self._root = root
        self._storage = FileCheckpointStorage(str(root / "checkpoints"), "job", inline_threshold=0)
        restored, reader, graph = None, self._storage.reader(), _graph(env)
        if path is not None:
            metadata, reader = open_snapshot(path)
            rules = restore_rules(env.job_settings().recovery)
            matching = match_operators(metadata, job_facts(graph).operators, rules)
            graph = _graph(env, matching.max_parallelism)
            records = [
                msgspec.structs.replace(record, operator_id=number) for number, record in matching.records.items()
            ]
            restored = RestoredJob(metadata.checkpoint_id, metadata.epoch, tuple(records))
        self._reader = reader
        backend = env.job_settings().backend
        options = TaskOptions(local_dir=str(root / f"local-{len(list(root.iterdir()))}"))
        plan = plan_job(graph, load_backend(backend.name, backend.options), options).plan
        self.job = LocalJob(
            plan,
            attempt=1 if restored is None else 2,
            epoch=restored.epoch if restored is not None else 0,
            restored=restored,
            rows_per_subtask=1000,
        )

    def run(self) -> list[Acknowledgement]:
        return self.job.run_epoch(reader=self._reader)

    def rows(self) -> list[Any]:
        return sorted(rows_of(self.run()))

    def checkpoint(self, number: int) -> tuple[str, CheckpointMetadata]:
        """One epoch with a checkpoint of everything: its folder and its metadata."""
        request = CheckpointRequest(number, SnapshotType.CHECKPOINT, 0, self.job.attempt, self.job.epoch + 1)
        metadata = self._taken(request, self._storage.writer(number, self.job.attempt))
        return self._storage.write_metadata(metadata), metadata

    def savepoint(self, number: int, written_as: SavepointFormat) -> tuple[str, CheckpointMetadata]:
        """One epoch with a savepoint, which is moved before anybody reads it."""
        request = CheckpointRequest(
            number, SnapshotType.SAVEPOINT, 0, self.job.attempt, self.job.epoch + 1, savepoint_format=written_as
        )
        location = SavepointLocation.create(str(self._root / "savepoints"), "job")
        metadata = self._taken(request, location.writer(request))
        moved = Path(location.write_metadata(metadata)).rename(self._root / f"moved-{number}")
        return str(moved), metadata

    def stored(self, number: int, form: str) -> tuple[str, CheckpointMetadata]:
        """One epoch with a snapshot of one of FORMS."""
        return self.checkpoint(number) if form == CHECKPOINT else self.savepoint(number, SavepointFormat(form))

    def _taken(self, request: CheckpointRequest, writer: SnapshotWriter) -> CheckpointMetadata:
        acknowledged = self.acknowledged = self.job.run_epoch(checkpoint=request, writer=writer, reader=self._reader)
        snapshots = sorted((s for a in acknowledged for s in a.snapshots), key=lambda s: s.subtask)
        records = tuple(
            OperatorRecord(
                o.operator_id,
                o.uid,
                o.name,
                o.parallelism,
                o.max_parallelism,
                tuple(s for s in snapshots if s.operator_id == o.operator_id),
            )
            for o in self.job.plan.operators()
        )
        kind, place = request.checkpoint_type, (self.job.attempt, self.job.epoch)
        return CheckpointMetadata(request.checkpoint_id, kind, "job", "job", *place, 0, 0, KEY_HASH, records)

    def close(self) -> None:
        forget_live_tasks("job")
