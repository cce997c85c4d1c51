"""All state of one (operator, subtask): the keyed backend over its local store, and operator state in memory."""

from __future__ import annotations

import shutil
import time

from holdfast.errors import StoreVersionError
from holdfast.failpoints import failpoint
from holdfast.runtime.epoch import RestoredJob
from holdfast.runtime.local_files import attempt_directory
from holdfast.runtime.plan import JobPlan, OperatorSpec
from holdfast.runtime.restored_state import keyed_share, restored_lists
from holdfast.state.handles import CheckpointRequest, OperatorRecord, SubtaskSnapshot
from holdfast.state.keyed_backend import KeyedScope, KeyedStateBackend
from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.keys import KeyCodec
from holdfast.state.operator_state import DefaultOperatorStateBackend, decode_operator_state, encode_operator_state
from holdfast.state.restore import restore_into
from holdfast.state.snapshot_files import InlineSnapshotReader
from holdfast.state.snapshot_io import CountingReader, SnapshotReader, SnapshotWriter
from holdfast.state.snapshots import async_write, sync_prepare
from holdfast.state.store import LocalStore, Stamp


class OperatorStore:
    """Opened by a task at the stamp that was accepted, committed under the next one."""

    def __init__(self, plan: JobPlan, attempt: int, spec: OperatorSpec, subtask: int) -> None:
        self._plan = plan
        self._spec = spec
        self._subtask = subtask
        self._key_groups = KeyGroupRange.of(subtask, spec.max_parallelism, spec.parallelism)
        self._directory = attempt_directory(plan, attempt) / f"{spec.operator_id}-{subtask}"
        self._store: LocalStore | None = None
        self.keyed_state: KeyedStateBackend | None = None
        self.operator_state: DefaultOperatorStateBackend
        self.restored = False
        self.restored_bytes = 0

    def open(
        self, base: Stamp, restored: RestoredJob | None, reader: SnapshotReader | None, packed: bytes | None
    ) -> None:
        """Continue at ``base``: with ``packed`` operator state from the epoch before, else from what was restored,
        else empty.
        """
        record = restored.record(self._spec.operator_id) if restored is not None else None
        self.restored = record is not None
        where = self._spec.describe(self._subtask)
        counting = CountingReader(reader or InlineSnapshotReader())
        if packed is not None:
            states = decode_operator_state(packed)
        else:
            states = restored_lists(self._spec, self._subtask, record, counting)
        self.operator_state = DefaultOperatorStateBackend(where, states)
        if self._spec.keyed:
            self._open_keyed(base, record, counting, fresh=packed is None)
        self.restored_bytes = counting.bytes_read

    def _open_keyed(self, base: Stamp, record: OperatorRecord | None, reader: SnapshotReader, fresh: bool) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        store = self._store = self._plan.backend.open(self._directory)
        codec = KeyCodec.for_type(self._spec.key_type)
        if store.stamp() is None or (fresh and store.stamp() != base):
            if not fresh:
                raise StoreVersionError(
                    f"{self._spec.describe(self._subtask)}: the local store of epoch {base.epoch} is not on this "
                    "host. The job goes back to its last checkpoint."
                )
            failpoint("task.restoring", epoch=base.epoch, subtask=self._subtask)
            restore_into(store, keyed_share(self._spec, self._subtask, record), reader, base)
        store.begin(base)
        backend = self._plan.backend
        scope = KeyedScope(self._spec.name, codec, self._key_groups, self._spec.max_parallelism)
        self.keyed_state = KeyedStateBackend(store, scope, backend.name, backend.cache_limit)

    def begin(self, base: Stamp) -> None:
        """The next epoch, in a process that still has the live objects."""
        self.restored_bytes = 0
        if self.keyed_state is not None and not self.keyed_state.resume(base):
            raise StoreVersionError(
                f"{self._spec.describe(self._subtask)}: the live state of this process is not that of epoch "
                f"{base.epoch}."
            )

    def pack_operator_state(self) -> bytes:
        return encode_operator_state(self.operator_state.snapshot())

    def snapshot(self, request: CheckpointRequest, writer: SnapshotWriter, nonce: str) -> SubtaskSnapshot:
        """Write what the checkpoint asks for. Called inside the epoch's transaction, before its commit."""
        started = time.monotonic()
        name = f"{self._spec.operator_id}-{self._subtask}-{nonce}"
        keyed = None
        if self.keyed_state is not None:
            prepared = sync_prepare(self.keyed_state, request, self._spec.operator_id, self._subtask)
            keyed = async_write(prepared, writer, name)
        failpoint("task.uploading", epoch=request.epoch, subtask=self._subtask, operator=self._spec.name)
        lists = self.operator_state.snapshot()
        handle = writer.write(f"{name}-operator", encode_operator_state(lists)) if lists else None
        written = sum(f.handle.size for f in keyed.files) if keyed is not None else 0
        written += handle.size if handle is not None else 0
        return SubtaskSnapshot(
            self._spec.operator_id,
            self._subtask,
            keyed,
            handle,
            sync_millis=round((time.monotonic() - started) * 1000),
            bytes_written=written,
        )

    def commit(self, stamp: Stamp, durable_epoch: int) -> None:
        """Change marks of epochs up to ``durable_epoch`` are in a completed checkpoint."""
        if self.keyed_state is not None and self._store is not None:
            self._store.forget_changes(durable_epoch)
            self.keyed_state.commit(stamp)

    def rollback(self) -> None:
        if self._store is not None:
            self._store.rollback()

    def close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None

    def remove(self) -> None:
        shutil.rmtree(self._directory, ignore_errors=True)
