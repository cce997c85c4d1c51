"""All state of one (operator, subtask): the keyed backend over its local store, and operator state in memory."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import ExitStack

from holdfast.errors import StateError, StoreVersionError
from holdfast.failpoints import failpoint
from holdfast.runtime.epoch import RestoredJob
from holdfast.runtime.local_files import attempt_directory
from holdfast.runtime.local_recovery import continue_store, local_stamp
from holdfast.runtime.plan import JobPlan, OperatorSpec
from holdfast.runtime.prepared import PreparedSubtask
from holdfast.runtime.restored_state import keyed_share, open_raw_state, restored_lists
from holdfast.runtime.state_context import OperatorStateContext
from holdfast.runtime.timer_service import InternalTimeServiceManager
from holdfast.state.handles import CheckpointRequest, OperatorRecord, StateMigrated
from holdfast.state.keyed_backend import KeyedScope, KeyedStateBackend
from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.keys import KeyCodec
from holdfast.state.operator_state import DefaultOperatorStateBackend, RegisteredStates
from holdfast.state.raw_state import RawStateOutputs
from holdfast.state.restore import restore_into
from holdfast.state.snapshot_files import InlineSnapshotReader
from holdfast.state.snapshot_io import CountingReader, SnapshotReader
from holdfast.state.snapshots import sync_prepare
from holdfast.state.store import LocalStore, Stamp
from holdfast.types.clock import wall_clock


class StreamOperatorStateHandler:
    """Opened by a task at the stamp that was accepted, committed under the next one."""

    def __init__(
        self,
        plan: JobPlan,
        attempt: int,
        spec: OperatorSpec,
        subtask: int,
        clock: Callable[[], int] = wall_clock,
    ) -> None:
        self._plan = plan
        self._attempt = attempt
        self._spec = spec
        self._subtask = subtask
        self._clock = clock
        self._key_groups = KeyGroupRange.of(subtask, spec.max_parallelism, spec.parallelism)
        self._directory = attempt_directory(plan, attempt) / f"{spec.operator_id}-{subtask}"
        self._store: LocalStore | None = None
        self._state: OperatorStateContext | None = None
        self._reader = CountingReader(InlineSnapshotReader())
        self._key_migrations: list[StateMigrated] = []
        self._warnings: list[str] = []

    def open(
        self, base: Stamp, restored: RestoredJob | None, reader: SnapshotReader | None, packed: bytes | None
    ) -> OperatorStateContext:
        """Continue at ``base``: with ``packed`` operator state from the epoch before, else from the handles that were
        assigned to this subtask, else empty. After an error nothing is open.
        """
        record = restored.record(self._spec.operator_id) if restored is not None else None
        self._reader = CountingReader(reader or InlineSnapshotReader())
        with ExitStack() as on_failure:
            on_failure.callback(self.close)
            state = self._state = OperatorStateContext(
                self._open_operator_state(record, packed),
                restored_checkpoint_id=restored.checkpoint_id if restored is not None else None,
                has_restored_state=record is not None,
            )
            open_raw_state(state, self._spec, self._subtask, record, self._reader)
            if self._spec.keyed:
                state.keyed_state = self._open_keyed(base, record, fresh=packed is None)
                state.timers = InternalTimeServiceManager(state.keyed_state)
            on_failure.pop_all()
        return state

    def _open_operator_state(self, record: OperatorRecord | None, packed: bytes | None) -> DefaultOperatorStateBackend:
        if packed is not None:
            states = DefaultOperatorStateBackend.unpack(packed)
        else:
            states = RegisteredStates.of(restored_lists(self._spec, self._subtask, record, self._reader))
        place = self._subtask, self._spec.parallelism
        return DefaultOperatorStateBackend(self._spec.describe(self._subtask), states, *place)

    def _open_keyed(self, base: Stamp, record: OperatorRecord | None, fresh: bool) -> KeyedStateBackend:
        store = self._restored_store(base, record) if fresh else self._local_store(base)
        backend, codec = self._plan.backend, KeyCodec.for_type(self._spec.key_type)
        version = self._spec.key_migrations.versions.current
        place = self._spec.max_parallelism, self._subtask, version, self._spec.describe(self._subtask)
        scope = KeyedScope(self._spec.name, codec, self._key_groups, *place)
        return KeyedStateBackend(store, scope, backend.name, backend.cache_limit, self._clock)

    def _local_store(self, base: Stamp) -> LocalStore:
        """The store of the epoch before, in its next transaction."""
        self._directory.mkdir(parents=True, exist_ok=True)
        store = self._store = self._plan.backend.open(self._directory)
        if store.stamp() is None:
            raise StoreVersionError(
                f"{self._spec.describe(self._subtask)}: the local store of epoch {base.epoch} is not on this "
                "host. The job goes back to its last checkpoint."
            )
        store.begin(base)
        return store

    def _restored_store(self, base: Stamp, record: OperatorRecord | None) -> LocalStore:
        """The store of an attempt that begins, in its first transaction."""
        failpoint("task.restoring", epoch=base.epoch, subtask=self._subtask)
        share = keyed_share(self._spec, self._subtask, record)
        # What is on this host has the keys that were stored.
        if record is not None and (share.regrouping is None or share.regrouping.keys is None):
            stamp = local_stamp(self._plan, self._spec, self._subtask, record, base.epoch)
            if stamp is not None:
                self._store = continue_store(
                    self._plan, self._attempt, self._directory, stamp, self._warn
                )
        if self._store is None:
            self._directory.mkdir(parents=True, exist_ok=True)
            self._store = self._plan.backend.open(self._directory)
            if self._store.stamp() != base:
                migrated = restore_into(self._store, share, self._reader, base, self._clock, self._directory)
                self._key_migrations = [] if migrated is None else [migrated]
            self._store.begin(base)
        return self._store

    @property
    def state(self) -> OperatorStateContext:
        assert self._state is not None, "the store is open"
        return self._state

    @property
    def keyed_state(self) -> KeyedStateBackend | None:
        return None if self._state is None else self._state.keyed_state

    @property
    def restored_bytes(self) -> int:
        """What was read to rebuild the state, since the store was opened."""
        return self._reader.bytes_read

    def take_migrations(self) -> list[StateMigrated]:
        """What was migrated since the last call."""
        found, self._key_migrations = self._key_migrations, []
        if self.keyed_state is not None:
            found += self.keyed_state.migrations
            self.keyed_state.migrations = []
        return found

    def _warn(self, text: str) -> None:
        self._warnings.append(f"{self._spec.describe(self._subtask)}: {text}")

    def take_warnings(self) -> list[str]:
        """Since the last call."""
        found, self._warnings = self._warnings, []
        return found

    def begin(self, base: Stamp) -> None:
        """The next epoch, in a process that still has the live objects."""
        if self.keyed_state is not None and not self.keyed_state.resume(base):
            raise StoreVersionError(
                f"{self._spec.describe(self._subtask)}: the live state of this process is not that of epoch "
                f"{base.epoch}."
            )

    def pack_operator_state(self) -> bytes:
        return self.state.operator_state.pack()

    def raw_outputs(self) -> RawStateOutputs:
        """Where the operator writes its raw state for the checkpoint that is being taken."""
        key_groups = self._key_groups if self._spec.keyed else None
        return RawStateOutputs(self._spec.describe(self._subtask), key_groups)

    def prepare(
        self, request: CheckpointRequest, nonce: str, raw: RawStateOutputs, progress: tuple[int | None, bool]
    ) -> PreparedSubtask:
        """Pin what the checkpoint asks for, inside the epoch's transaction, before its commit. ``progress`` is the
        watermark of the operator, and whether its input has ended.
        """
        started = time.monotonic()
        keyed = None
        if self.keyed_state is not None:
            keyed = sync_prepare(self.keyed_state, request, self._spec.operator_id, self._subtask)
        return PreparedSubtask(
            request=request,
            operator_id=self._spec.operator_id,
            operator_name=self._spec.name,
            subtask=self._subtask,
            name=f"{self._spec.operator_id}-{self._subtask}-{nonce}",
            key_groups=self._key_groups,
            keyed=keyed,
            operator_state=self.state.operator_state.snapshot(),
            raw_keyed=raw.encoded_keyed(),
            raw_operator=raw.encoded_operator(),
            watermark=progress[0],
            finished=progress[1],
            sync_millis=round((time.monotonic() - started) * 1000),
            nonce=nonce,
            uid=self._spec.uid,
        )

    def commit(self, stamp: Stamp, durable_epoch: int) -> None:
        """Change marks of epochs up to ``durable_epoch`` are in a completed checkpoint."""
        if self.keyed_state is not None and self._store is not None:
            try:
                self._store.forget_changes(durable_epoch)
                self.keyed_state.commit(stamp)
            except StateError as error:
                raise error.at(operator=self._spec.describe(self._subtask)) from error.__cause__

    def rollback(self) -> None:
        if self._store is not None:
            self._store.rollback()

    def close(self) -> None:
        if self._state is not None:
            self._state.close_raw_inputs()
        if self._store is not None:
            self._store.close()
            self._store = None

    def remove(self) -> None:
        shutil.rmtree(self._directory, ignore_errors=True)
