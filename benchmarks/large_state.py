"""Keyed state of many keys as snapshot files, written without a backend: quick enough for a million of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

import msgspec
import numpy as np

from holdfast.state.descriptors import ValueStateDescriptor
from holdfast.state.handles import KeyedFile, KeyedSnapshot, SnapshotKind, StateMeta
from holdfast.state.keyed_file import encode_parts
from holdfast.state.keyed_state import VOID
from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.keys import KeyCodec
from holdfast.state.layout import group_bytes, id_bytes, sized
from holdfast.state.snapshot_io import SnapshotWriter
from holdfast.types.typeinfo import Types

VALUE = ValueStateDescriptor("pair", Types.TUPLE([Types.LONG(), Types.LONG()]))
CODEC = KeyCodec.for_type(Types.LONG())
_META = StateMeta("pair", 0, VALUE.kind, {"value": VALUE.serializers()["value"].snapshot()})
_encode = msgspec.msgpack.Encoder().encode


def write_state(
    keys: int, parallelism: int, max_parallelism: int, writer: SnapshotWriter, deltas: int = 0
) -> list[KeyedSnapshot]:
    """The snapshots of all subtasks: an image of ``keys`` keys, and ``deltas`` that each change a hundredth of them."""
    everything = np.arange(keys)
    chains = [everything, *(everything[number::100] for number in range(deltas))]
    files: list[list[KeyedFile]] = [[] for _ in range(parallelism)]
    for number, changed in enumerate(chains):
        for subtask, entries in enumerate(_by_subtask(changed, parallelism, max_parallelism, number)):
            key_groups = KeyGroupRange.of(subtask, max_parallelism, parallelism)
            for part in encode_parts(entries, (), key_groups):
                kind = SnapshotKind.FULL if not files[subtask] else SnapshotKind.DELTA
                handle = writer.write(f"{subtask}-{number}-{len(files[subtask])}", part.data, shared=True)
                span = part.first_key_group, part.last_key_group
                files[subtask].append(KeyedFile(handle, kind, *span, part.entries, number, part.index_bytes))
    ranges = [KeyGroupRange.of(subtask, max_parallelism, parallelism) for subtask in range(parallelism)]
    return [
        KeyedSnapshot(one.start, one.end, tuple(mine), (_META,), CODEC.snapshot(), "lmdb")
        for one, mine in zip(ranges, files, strict=True)
    ]


def state_bytes(snapshots: Sequence[KeyedSnapshot]) -> int:
    return sum(file.handle.size for snapshot in snapshots for file in snapshot.files)


def _by_subtask(
    keys: np.ndarray, parallelism: int, max_parallelism: int, version: int
) -> list[list[tuple[bytes, bytes | None]]]:
    listed = keys.tolist()
    groups = (CODEC.hash_many(listed) % max_parallelism).tolist()
    head, encode = id_bytes(_META.state_id), CODEC.encode
    entries: list[tuple[bytes, bytes | None]] = [
        (group_bytes(group) + head + sized(encode(key)) + VOID, _encode((version, key * 2654435761 % 1000003)))
        for group, key in zip(groups, listed, strict=True)
    ]
    entries.sort(key=itemgetter(0))
    owners = groupby(entries, key=lambda entry: int.from_bytes(entry[0][:2], "big") * parallelism // max_parallelism)
    found = {owner: list(mine) for owner, mine in owners}
    return [found.get(subtask, []) for subtask in range(parallelism)]
