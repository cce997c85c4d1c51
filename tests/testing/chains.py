"""What a snapshot is made of."""

from __future__ import annotations

from holdfast.state.handles import KeyedSnapshot, SnapshotKind
from holdfast.state.rocksdb.images import ENGINE as ROCKSDB


def is_chain(keyed: KeyedSnapshot | None, deltas: int) -> bool:
    """Whether a snapshot is a full image and so many deltas; of RocksDB's files, whether it has some that an earlier
    checkpoint stored.
    """
    assert keyed is not None
    if keyed.native is None:
        return [file.kind for file in keyed.files] == [SnapshotKind.FULL] + [SnapshotKind.DELTA] * deltas
    stored_by = {file.checkpoint_id for file in keyed.native.files}
    if keyed.native.engine == ROCKSDB:
        return not keyed.files and (len(stored_by) > 1) == (deltas > 0)
    return len({file.checkpoint_id for file in keyed.files} - stored_by) == deltas
