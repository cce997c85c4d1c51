"""Operator state in files, and back: a restore reads what the files say of their states first, then only the elements
that redistribution gives to its subtask.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import msgspec

from holdfast.state.handles import DistributionMode, ListStateIndex, ListStateSnapshot, SubtaskSnapshot
from holdfast.state.operator_state import RegisteredStates
from holdfast.state.parts_file import PartsFileReader, encode_parts_file
from holdfast.state.redistribution import redistribute
from holdfast.state.snapshot_io import SnapshotReader


class _StateInfo(msgspec.Struct, array_like=True, frozen=True):
    """One state of a file. Its elements are the next ``count`` parts."""

    name: str
    mode: DistributionMode
    serializers: dict[str, Any]
    count: int


def encode_operator_state(states: Sequence[ListStateSnapshot]) -> bytes:
    """The bytes of a snapshot, for ``SubtaskSnapshot.operator_state``."""
    info = [_StateInfo(state.name, state.mode, state.serializers, len(state.elements)) for state in states]
    return encode_parts_file(info, [element for state in states for element in state.elements])


def restore_operator_state(
    written: Sequence[SubtaskSnapshot], subtask: int, parallelism: int, reader: SnapshotReader
) -> RegisteredStates:
    """What one subtask gets of what all old subtasks wrote."""
    with ExitStack() as stack:
        files = [_open(snapshot, reader, stack) for snapshot in written]
        # First pass: what states there are. Places stand for elements, and are dealt out in their stead.
        stored = [_index(number, file) for number, file in enumerate(files)]
        mine = redistribute(stored, parallelism)[subtask]
        # Second pass: the elements that this subtask got.
        values = _read(files, mine)
        return RegisteredStates.of(
            ListStateSnapshot(one.name, one.mode, one.serializers, tuple(values[place] for place in one.elements))
            for one in mine
        )


def _open(snapshot: SubtaskSnapshot, reader: SnapshotReader, stack: ExitStack) -> PartsFileReader | None:
    if snapshot.operator_state is None:
        return None
    file = PartsFileReader(snapshot.operator_state, reader)
    stack.callback(file.close)
    return file


def _index(number: int, file: PartsFileReader | None) -> tuple[ListStateIndex, ...]:
    if file is None:
        return ()
    states: list[ListStateIndex] = []
    first = 0
    for one in file.info(list[_StateInfo]):
        places = tuple((number, part) for part in range(first, first + one.count))
        states.append(ListStateIndex(one.name, one.mode, one.serializers, places))
        first += one.count
    return tuple(states)


def _read(files: Sequence[PartsFileReader | None], wanted: Sequence[ListStateIndex]) -> dict[tuple[int, int], bytes]:
    values: dict[tuple[int, int], bytes] = {}
    places = sorted({place for state in wanted for place in state.elements})
    for number, file in enumerate(files):
        parts = [part for of_file, part in places if of_file == number]
        if file is not None and parts:
            values.update(zip([(number, part) for part in parts], file.read(parts), strict=True))
    return values
