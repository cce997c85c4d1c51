"""Values and a small job for tests of the coordinator: real snapshots of dictionaries, without Spark or a backend."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from holdfast.checkpoint.completed import CompletedCheckpoint
from holdfast.checkpoint.completed_store import (
    CompletedCheckpointStore,
    FileCompletedCheckpointStore,
    MemoryCompletedCheckpointStore,
)
from holdfast.checkpoint.coordinator import CheckpointCoordinator
from holdfast.checkpoint.job_directory import JobDirectory
from holdfast.checkpoint.job_facts import JobFacts, JobOperator
from holdfast.checkpoint.policy import CheckpointPolicy
from holdfast.checkpoint.services import JobServices
from holdfast.checkpoint.snapshot_triggers import CheckpointKind, SnapshotTrigger
from holdfast.checkpoint.storage import CheckpointStorage, FileCheckpointStorage, MemoryCheckpointStorage
from holdfast.state.handles import (
    CheckpointMetadata,
    CheckpointRequest,
    FileHandle,
    KeyedFile,
    KeyedSnapshot,
    OperatorRecord,
    SnapshotKind,
    SubtaskSnapshot,
)
from holdfast.state.snapshot_io import SnapshotReader
from holdfast.testing.contracts import completed_stores
from holdfast.testing.contracts.completed_stores import JOB_ID

OPERATOR = "c9cecfed5cae9d489451c50e442666e3"
KEY_HASH = "spark-xxhash64-42"


class ManualClock:
    def __init__(self, now: int = 1_000_000) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now


def handle(path: str = "", size: int = 100, inline: bytes | None = None) -> FileHandle:
    return FileHandle(path=path, size=size, checksum="0" * 32, inline=inline)


def keyed_file(
    path: str = "shared/1-1-x", size: int = 100, kind: SnapshotKind = SnapshotKind.FULL, checkpoint_id: int = 1
) -> KeyedFile:
    return KeyedFile(handle(path, size), kind, 0, 127, entries=1, checkpoint_id=checkpoint_id)


def keyed(*files: KeyedFile, key_groups: tuple[int, int] = (0, 127), backend: str = "heap") -> KeyedSnapshot:
    return KeyedSnapshot(*key_groups, files=files, states=(), key_serializer={}, backend=backend)


def snapshot(subtask: int = 0, operator_id: str = OPERATOR, **parts: Any) -> SubtaskSnapshot:
    return SubtaskSnapshot(operator_id=operator_id, subtask=subtask, **parts)


def record(
    operator_id: str = OPERATOR,
    subtasks: Sequence[SubtaskSnapshot] = (),
    uid: str | None = "mapper-id",
    parallelism: int = 1,
    max_parallelism: int = 128,
) -> OperatorRecord:
    return OperatorRecord(operator_id, uid, f"name of {operator_id}", parallelism, max_parallelism, tuple(subtasks))


def metadata(
    checkpoint_id: int = 1, operators: Sequence[OperatorRecord] = (), properties: Mapping[str, Any] | None = None
) -> CheckpointMetadata:
    bare = completed_stores.metadata(checkpoint_id)
    return msgspec.structs.replace(bare, operators=tuple(operators), properties=dict(properties or {}))


class DictJob:
    """One operator whose subtasks keep a dictionary each; changes are (subtask, key, value or None) of an epoch.

    Built on a directory that has checkpoints, or after ``crash``, it restores the newest one, as a new driver would.
    """

    def __init__(
        self,
        root: Path | None,
        policy: CheckpointPolicy | None = None,
        num_retained: int = 1,
        parallelism: int = 2,
        inline_threshold: int = 8,
    ) -> None:
        self.root = root
        self.clock = ManualClock()
        self.policy = policy or CheckpointPolicy(interval_ms=100)
        self.num_retained = num_retained
        self.parallelism = parallelism
        self.inline_threshold = inline_threshold
        self.attempt = 0
        self.storage: CheckpointStorage
        self.store: CompletedCheckpointStore
        self.new_driver()

    def new_driver(self, accept_repeated_output: bool = False) -> None:
        if self.root is None:
            self.storage = MemoryCheckpointStorage(limit=1000)
            self.store = MemoryCompletedCheckpointStore(self.storage, self.num_retained)
        else:
            files = FileCheckpointStorage(str(self.root), JOB_ID, self.inline_threshold)
            self.storage, self.store = files, FileCompletedCheckpointStore(files, self.num_retained)
        self.coordinator = CheckpointCoordinator(
            self.policy, self.facts(), self.storage, JobServices.local(self.storage, self.store), self.clock, Random(1)
        )
        self.restart(accept_repeated_output)

    def facts(self) -> JobFacts:
        operator = JobOperator(OPERATOR, "counter", self.parallelism, 128, uid="mapper-id")
        return JobFacts(JOB_ID, "a job", KEY_HASH, (operator,))

    def restart(self, accept_repeated_output: bool = False) -> None:
        self.attempt = self._next_attempt()
        restored = self.coordinator.select_for_restore(accept_repeated_output)
        self.coordinator.start_attempt(self.attempt, restored)
        self.epoch = restored.metadata.epoch if restored else 0
        self.state = self.read(restored.metadata, self.storage.reader()) if restored else self.empty()
        self.changed: list[tuple[int, int, str]] = []

    def _next_attempt(self) -> int:
        if not self.root:
            return self.attempt + 1
        directory = JobDirectory(str(self.root), JOB_ID)
        number = directory.last_attempt() + 1
        assert directory.record_attempt(number)
        return number

    def empty(self) -> list[dict[str, int]]:
        return [{} for _ in range(self.parallelism)]

    def run_epoch(
        self, changes: Sequence[tuple[int, str, int | None]] = (), checkpoint: bool = False, full: bool = False
    ) -> CheckpointRequest | None:
        self.epoch += 1
        for subtask, key, value in changes:
            self.changed.append((self.epoch, subtask, key))
            if value is None:
                self.state[subtask].pop(key, None)
            else:
                self.state[subtask][key] = value
        if not checkpoint:
            return self.coordinator.trigger_if_due(self.epoch, self.clock.now)
        kind = CheckpointKind.FULL if full else CheckpointKind.CONFIGURED
        return self.coordinator.trigger(SnapshotTrigger(kind=kind), self.epoch, self.clock.now)

    def checkpoint(self, changes: Sequence[tuple[int, str, int | None]] = ()) -> CompletedCheckpoint:
        request = self.run_epoch(changes, checkpoint=True)
        assert request is not None
        self.acknowledge_all(request)
        completed = self.coordinator.complete(request.checkpoint_id)
        assert completed is not None
        return completed

    def acknowledge_all(self, request: CheckpointRequest) -> None:
        for subtask in range(self.parallelism):
            self.coordinator.acknowledge(request.checkpoint_id, self.write(request, subtask))

    def write(self, request: CheckpointRequest, subtask: int) -> SubtaskSnapshot:
        """What a task does: a full image, or the keys that changed since the base."""
        base = request.base_epoch_for(OPERATOR, subtask)
        state = self.state[subtask]
        if base is None:
            kind, keys = SnapshotKind.FULL, set(state)
        else:
            kind = SnapshotKind.DELTA
            keys = {key for epoch, changed, key in self.changed if changed == subtask and epoch > base}
        content = {key: state.get(key) for key in sorted(keys)}
        data = json.dumps(content).encode()
        writer = self.storage.writer(request.checkpoint_id, request.attempt)
        stored = writer.write(f"{OPERATOR}-{subtask}", data, shared=True)
        file = KeyedFile(stored, kind, subtask, subtask, len(content), request.checkpoint_id)
        own = writer.write(f"{OPERATOR}-{subtask}-list", b"operator state", shared=False)
        image = keyed(file, key_groups=(subtask, subtask))
        return snapshot(subtask, keyed=image, operator_state=own, bytes_written=len(data))

    def read(self, checkpoint: CheckpointMetadata, reader: SnapshotReader) -> list[dict[str, int]]:
        result = self.empty()
        for operator in checkpoint.operators:
            for part in operator.subtasks:
                assert part.keyed is not None
                for file in part.keyed.files:
                    if file.kind is SnapshotKind.FULL:
                        result[part.subtask].clear()
                    for key, value in json.loads(reader.read(file.handle)).items():
                        if value is None:
                            result[part.subtask].pop(key, None)
                        else:
                            result[part.subtask][key] = value
        return result

    def paths(self) -> set[str]:
        """All files of the job's directory but the record of its attempts."""
        assert self.root is not None
        job = self.root / JOB_ID
        return {
            str(path.relative_to(job)) for path in job.rglob("*") if path.is_file() and path.parent.name != "attempts"
        }
