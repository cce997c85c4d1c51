"""What tasks, coordinator and stored metadata say to each other about snapshots. Plain values, msgspec-encodable."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import msgspec


class DistributionMode(StrEnum):
    """How a list of operator state spreads over subtasks at a restore."""

    SPLIT_DISTRIBUTE = "SPLIT_DISTRIBUTE"
    UNION = "UNION"
    BROADCAST = "BROADCAST"


class SnapshotKind(StrEnum):
    """FULL stands alone; DELTA is applied on top of the files before it."""

    FULL = "FULL"
    DELTA = "DELTA"


class SnapshotType(StrEnum):
    """What a barrier asks for; it decides what follows from a completion.

    A CHECKPOINT enters the store, commits sinks, and functions are notified of it. A SAVEPOINT is the user's: none of
    that. A SYNC_SAVEPOINT is the last thing that a job does: sinks commit, functions are notified, and it enters no
    store.
    """

    CHECKPOINT = "CHECKPOINT"
    SAVEPOINT = "SAVEPOINT"
    SYNC_SAVEPOINT = "SYNC_SAVEPOINT"

    @property
    def is_savepoint(self) -> bool:
        return self is not SnapshotType.CHECKPOINT


class SavepointFormat(StrEnum):
    """CANONICAL is read by every backend and by other programs; NATIVE is that of a backend's full checkpoint."""

    CANONICAL = "CANONICAL"
    NATIVE = "NATIVE"


class RowGroup(msgspec.Struct, frozen=True, omit_defaults=True):
    """A row group of a Parquet file: bytes that are read and verified as one."""

    rows: int
    offset: int
    length: int
    checksum: str
    #: Of its rows, where they have key groups.
    first_key_group: int = -1
    last_key_group: int = -1


class TableIndex(msgspec.Struct, frozen=True):
    """What a Parquet file holds: its row groups, then its footer, without a gap."""

    row_groups: tuple[RowGroup, ...]
    footer_bytes: int
    footer_checksum: str

    @property
    def rows(self) -> int:
        return sum(one.rows for one in self.row_groups)


class FileHandle(msgspec.Struct, frozen=True, omit_defaults=True):
    """A stored file, or its bytes when they are few: then ``inline`` holds them and ``path`` is empty.

    ``path`` is relative to the job's checkpoint directory (relocatable snapshots: to the snapshot's own folder).
    """

    path: str
    size: int
    checksum: str  # xxh3_128 of the whole content, hex
    inline: bytes | None = None
    #: Set where the file is a Parquet table (see state/canonical).
    table: TableIndex | None = None


class KeyedFile(msgspec.Struct, frozen=True, omit_defaults=True):
    """One file of keyed state, sorted by stored key and indexed by key group (see state/keyed_file.py), or the table of
    one state.
    """

    handle: FileHandle
    kind: SnapshotKind
    first_key_group: int
    last_key_group: int
    entries: int
    checkpoint_id: int  # the checkpoint that wrote it
    index_bytes: int = 0  # its last bytes, which say where everything is; 0 where that was not recorded
    state_id: int | None = None  # of the only state in it, where the file is a table


class NativeFile(msgspec.Struct, frozen=True):
    """One file of a database, under the name that it has there."""

    name: str
    handle: FileHandle
    checkpoint_id: int  # the checkpoint that stored it


class NativeImage(msgspec.Struct, frozen=True):
    """All files of a database, in the format of its engine. Files that never change are stored once for all images."""

    engine: str
    files: tuple[NativeFile, ...]
    empty: bool  # no state has an entry

    @property
    def size(self) -> int:
        return sum(file.handle.size for file in self.files)


class StateMeta(msgspec.Struct, frozen=True):
    """A registered keyed state: its name, its id inside stored keys, its kind and its serializers' snapshots."""

    name: str
    state_id: int
    kind: str  # value | list | map | reducing | aggregating | timers
    serializers: dict[str, Any]  # role (key, namespace, value, map_key) -> serializer snapshot
    ttl: bool = False
    version: int = 0  # as the program counts them


class KeyedSnapshot(msgspec.Struct, frozen=True):
    """Keyed state of one (operator, subtask): a database in the format of its engine, or files of entries, or such
    files on top of a database, in order of application.
    """

    first_key_group: int
    last_key_group: int
    files: tuple[KeyedFile, ...]
    states: tuple[StateMeta, ...]
    key_serializer: dict[str, Any]
    backend: str
    native: NativeImage | None = None
    key_version: int = 0  # as the program counts them

    @property
    def stands_alone(self) -> bool:
        """Whether it needs nothing of the checkpoint that it is based on."""
        return self.native is not None or (bool(self.files) and self.files[0].kind is SnapshotKind.FULL)

    @property
    def has_entries(self) -> bool:
        return any(file.entries for file in self.files) or (self.native is not None and not self.native.empty)

    def handles(self) -> Iterator[FileHandle]:
        if self.native is not None:
            yield from (file.handle for file in self.native.files)
        yield from (file.handle for file in self.files)

    def written_by(self, checkpoint_id: int) -> Iterator[FileHandle]:
        """The files that one checkpoint stored."""
        files: tuple[KeyedFile | NativeFile, ...] = self.files
        if self.native is not None:
            files += self.native.files
        return (file.handle for file in files if file.checkpoint_id == checkpoint_id)


class ListStateSnapshot(msgspec.Struct, frozen=True):
    """One named operator state: elements as encoded bytes (BROADCAST: key and value alternate)."""

    name: str
    mode: DistributionMode
    serializers: dict[str, Any]
    elements: tuple[bytes, ...]
    version: int = 0


class ListStateIndex(msgspec.Struct, frozen=True):
    """A ListStateSnapshot whose elements are still in their files: (number of the file, number of the part)."""

    name: str
    mode: DistributionMode
    serializers: dict[str, Any]
    elements: tuple[tuple[int, int], ...]
    version: int = 0


class OperatorTable(msgspec.Struct, frozen=True, omit_defaults=True):
    """One named operator state of a subtask as a table; a state without elements has none."""

    name: str
    mode: DistributionMode
    serializers: dict[str, Any]
    handle: FileHandle | None = None
    version: int = 0


class RawKeyedSnapshot(msgspec.Struct, frozen=True):
    """Bytes that an operator wrote for the key groups of its subtask (see state/raw_state.py)."""

    first_key_group: int
    last_key_group: int
    handle: FileHandle


class SubtaskSnapshot(msgspec.Struct, frozen=True):
    """All that one (operator, subtask) acknowledges for a checkpoint."""

    operator_id: str
    subtask: int
    keyed: KeyedSnapshot | None = None
    #: the managed lists and maps: in one file (see state/operator_state_file.py), or a table for each
    operator_state: FileHandle | None = None
    operator_tables: tuple[OperatorTable, ...] = ()
    #: what an operator wrote itself, per key group and in partitions
    raw_keyed: RawKeyedSnapshot | None = None
    raw_operator: FileHandle | None = None
    #: sink transactions that are pre-committed and not yet committed, as the sink encoded them
    transactions: tuple[bytes, ...] = ()
    #: the event time that it had come to; None where that was not recorded
    watermark: int | None = None
    #: its input had ended
    finished: bool = False
    #: of the execution that took it: a local store at that stamp holds the same keyed state
    nonce: str = ""
    #: of the request that it answers, as its barrier brought it; empty where nobody asked
    trigger_id: str = ""
    #: timings and sizes for the statistics
    start_delay_millis: int = 0
    alignment_millis: int = 0
    sync_millis: int = 0
    async_millis: int = 0
    bytes_written: int = 0

    def handles(self) -> Iterator[FileHandle]:
        """All that it is stored in."""
        if self.keyed is not None:
            yield from self.keyed.handles()
        yield from self._other_handles()

    def written_by(self, checkpoint_id: int) -> Iterator[FileHandle]:
        """What one checkpoint stored of it."""
        if self.keyed is not None:
            yield from self.keyed.written_by(checkpoint_id)
        yield from self._other_handles()

    def _other_handles(self) -> Iterator[FileHandle]:
        yield from (table.handle for table in self.operator_tables if table.handle is not None)
        if self.raw_keyed is not None:
            yield self.raw_keyed.handle
        yield from (handle for handle in (self.operator_state, self.raw_operator) if handle is not None)


class OperatorRecord(msgspec.Struct, frozen=True):
    """One operator inside a checkpoint's metadata."""

    operator_id: str
    uid: str | None
    name: str
    parallelism: int
    max_parallelism: int
    subtasks: tuple[SubtaskSnapshot, ...]

    @property
    def finished(self) -> bool:
        """Whether the input of all subtasks had ended. That of those that go on may come to any subtask."""
        return bool(self.subtasks) and all(snapshot.finished for snapshot in self.subtasks)


class StateMigrated(msgspec.Struct, frozen=True):
    """What a migration did to one state of one (operator, subtask); to its keys where the state is ``*``."""

    operator: str
    subtask: int
    state: str
    versions: tuple[int, int]
    entries: int
    millis: int

    def describe(self) -> str:
        what = "its keys" if self.state == "*" else f"state '{self.state}'"
        how = "by its type" if self.versions[0] == self.versions[1] else "version {} to {}".format(*self.versions)
        return (
            f"operator '{self.operator}', subtask {self.subtask}: {what} migrated ({how}), {self.entries} entries in "
            f"{self.millis} ms"
        )


class CheckpointMetadata(msgspec.Struct, frozen=True):
    """The content of a ``_metadata`` file."""

    checkpoint_id: int
    checkpoint_type: SnapshotType
    job_id: str
    job_name: str
    attempt: int
    epoch: int
    trigger_timestamp: int
    completion_timestamp: int
    key_hash: str  # the name of the key hash function; another one at restore is an error
    operators: tuple[OperatorRecord, ...]
    properties: dict[str, Any] = {}


class CheckpointRequest(msgspec.Struct, frozen=True):
    """What the barrier of a checkpoint asks of every subtask.

    ``base_epoch`` is the epoch of the newest checkpoint that was completed when this one was triggered: a delta holds
    what changed after it. None, or an (operator, subtask) listed in ``full``, asks for a full image.
    """

    checkpoint_id: int
    checkpoint_type: SnapshotType
    timestamp: int
    attempt: int
    epoch: int
    base_epoch: int | None = None
    full: frozenset[tuple[str, int]] = frozenset()
    #: What a savepoint is written in; None for a checkpoint.
    savepoint_format: SavepointFormat | None = None
    #: By which whoever asked for it follows it; empty where nobody did.
    trigger_id: str = ""

    def base_epoch_for(self, operator_id: str, subtask: int) -> int | None:
        return None if (operator_id, subtask) in self.full else self.base_epoch
