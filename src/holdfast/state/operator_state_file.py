"""Operator state in files, and back: a restore reads what the files say of their states first, then only the elements
that redistribution gives to its subtask.

A state that was registered and has no element is in the files too, and every subtask of a restore hears of it: it is
not the same as a state that never was.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import msgspec

from holdfast.state.canonical.operator_tables import PartsTableReader
from holdfast.state.handles import DistributionMode, ListStateIndex, ListStateSnapshot, SubtaskSnapshot
from holdfast.state.operator_state import RegisteredStates
from holdfast.state.parts_file import PartsFileReader, encode_parts_file
from holdfast.state.redistribution import redistribute
from holdfast.state.snapshot_io import SnapshotReader

PartsReader = PartsFileReader | PartsTableReader
#: Snapshots of the serializers of a state, by role.
Types = dict[str, Any]


class _StateInfo(msgspec.Struct, array_like=True, frozen=True):
    """One state of a file. Its elements are the next ``count`` parts."""

    name: str
    mode: DistributionMode
    serializers: dict[str, Any]
    count: int
    version: int


def encode_operator_state(states: Sequence[ListStateSnapshot]) -> bytes:
    """The bytes of a snapshot, for ``SubtaskSnapshot.operator_state``."""
    info = [
        _StateInfo(state.name, state.mode, state.serializers, len(state.elements), state.version) for state in states
    ]
    return encode_parts_file(info, [element for state in states for element in state.elements])


def restore_operator_state(
    written: Sequence[SubtaskSnapshot], subtask: int, parallelism: int, reader: SnapshotReader
) -> RegisteredStates:
    """What one subtask gets of what all old subtasks wrote."""
    with ExitStack() as stack:
        files: list[PartsReader] = []
        # First pass: what states there are. Places stand for elements, and are dealt out in their stead.
        stored = [tuple(_states_of(snapshot, reader, stack, files)) for snapshot in written]
        mine = redistribute(stored, parallelism)[subtask]
        mine += _without_elements(stored, mine)
        # Second pass: the elements that this subtask got.
        values = _read(files, mine)
        return RegisteredStates.of(
            ListStateSnapshot(
                one.name, one.mode, one.serializers, tuple(values[place] for place in one.elements), one.version
            )
            for one in mine
        )


def registered_states(snapshot: SubtaskSnapshot, reader: SnapshotReader) -> list[tuple[str, DistributionMode, Types]]:
    """The names, modes and types of the operator states of one old subtask. No element is read."""
    found = [(table.name, table.mode, table.serializers) for table in snapshot.operator_tables]
    if snapshot.operator_state is not None:
        with PartsFileReader(snapshot.operator_state, reader) as file:
            found += [(one.name, one.mode, one.serializers) for one in file.info(list[_StateInfo])]
    return found


def _states_of(
    snapshot: SubtaskSnapshot, reader: SnapshotReader, stack: ExitStack, files: list[PartsReader]
) -> Iterator[ListStateIndex]:
    """The states of one old subtask. The files that they are in are opened and added to ``files``."""
    if snapshot.operator_state is not None:
        file = stack.enter_context(PartsFileReader(snapshot.operator_state, reader))
        files.append(file)
        first = 0
        for one in file.info(list[_StateInfo]):
            places = tuple((len(files) - 1, part) for part in range(first, first + one.count))
            yield ListStateIndex(one.name, one.mode, one.serializers, places, one.version)
            first += one.count
    for table in snapshot.operator_tables:
        places = ()
        if table.handle is not None:
            elements = stack.enter_context(PartsTableReader.of_state(table.handle, table, reader))
            files.append(elements)
            places = tuple((len(files) - 1, part) for part in range(len(elements)))
        yield ListStateIndex(table.name, table.mode, table.serializers, places, table.version)


def _without_elements(
    stored: Sequence[tuple[ListStateIndex, ...]], mine: Sequence[ListStateIndex]
) -> tuple[ListStateIndex, ...]:
    """States that were registered and of which a subtask got nothing."""
    registered = {(one.name, one.mode): one for states in stored for one in states}
    for one in mine:
        registered.pop((one.name, one.mode), None)
    return tuple(msgspec.structs.replace(one, elements=()) for one in registered.values())


def _read(files: Sequence[PartsReader], wanted: Sequence[ListStateIndex]) -> dict[tuple[int, int], bytes]:
    values: dict[tuple[int, int], bytes] = {}
    places = sorted({place for state in wanted for place in state.elements})
    for number, file in enumerate(files):
        parts = [part for of_file, part in places if of_file == number]
        if parts:
            values.update(zip([(number, part) for part in parts], file.read(parts), strict=True))
    return values
