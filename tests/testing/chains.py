"""What a snapshot is made of."""

from __future__ import annotations

from holdfast.state.handles import KeyedSnapshot, SnapshotKind


def is_chain(keyed: KeyedSnapshot | None, deltas: int) -> bool:
    """Whether a snapshot is a full image and so many deltas; of a database, whether it has files that an earlier
    checkpoint stored.
    """
    assert keyed is not None
    if keyed.native is not None:
        return not keyed.files and (len({file.checkpoint_id for file in keyed.native.files}) > 1) == (deltas > 0)
    return [file.kind for file in keyed.files] == [SnapshotKind.FULL] + [SnapshotKind.DELTA] * deltas
