"""How stored state is assigned to subtasks at a restore. Pure functions of what the old subtasks wrote.

Operator state is spread by the mode of each state (see DistributionMode); keyed state follows its key groups. Only a
restore redistributes: between epochs nothing moves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, TypeVar

import msgspec

from holdfast.state.handles import DistributionMode, KeyedSnapshot, ListStateIndex, ListStateSnapshot
from holdfast.state.keygroups import KeyGroupRange, check_parallelism

OperatorState = tuple[ListStateSnapshot, ...]

#: A state with its elements, or with the places where they are.
State = TypeVar("State", ListStateSnapshot, ListStateIndex)


def redistribute(old: Sequence[tuple[State, ...]], parallelism: int) -> list[tuple[State, ...]]:
    """What each of ``parallelism`` new subtasks gets of the operator states that the ``old`` ones wrote.

    - SPLIT_DISTRIBUTE: unchanged under the same parallelism; otherwise contiguous shares whose sizes differ by one at
      most. The states are taken in the order of their names, and odd elements go on where those of the state before
      ended, so that no subtask collects the odd elements of all states.
    - UNION: everybody gets all elements, in subtask order.
    - BROADCAST: unchanged under the same parallelism if all subtasks wrote it; otherwise the copies are dealt
      round-robin.

    A state that has nothing for a subtask is absent there; one whose elements were written with different types is
    there once for each.
    """
    check_parallelism(parallelism)
    result: list[list[State]] = [[] for _ in range(parallelism)]
    same_parallelism = len(old) == parallelism
    first_odd = 0
    for written in _by_name(old, DistributionMode.SPLIT_DISTRIBUTE):
        if same_parallelism:
            _keep(result, written)
        else:
            first_odd = _split(result, _elements(written), first_odd)
    for written in _by_name(old, DistributionMode.UNION):
        union = list(_snapshots(_elements(written)))
        for states in result:
            states.extend(union)
    for written in _by_name(old, DistributionMode.BROADCAST):
        if same_parallelism and len(written) == parallelism:
            _keep(result, written)
        else:
            for subtask, states in enumerate(result):
                states.append(written[subtask % len(written)][1])
    return [tuple(states) for states in result]


def assign_keyed(old: Sequence[KeyedSnapshot], new_range: KeyGroupRange) -> list[KeyedSnapshot]:
    """The snapshots that hold key groups of ``new_range``, in their order. The reader of each cuts it to that range."""
    return [
        snapshot
        for snapshot in old
        if KeyGroupRange(snapshot.first_key_group, snapshot.last_key_group).intersects(new_range)
    ]


def _by_name(old: Sequence[tuple[State, ...]], mode: DistributionMode) -> list[list[tuple[int, State]]]:
    """The states of ``mode`` in the order of their names: a fixed order, the same at every restore. Each with the
    subtask that wrote it.
    """
    states: dict[str, list[tuple[int, State]]] = {}
    for subtask, snapshots in enumerate(old):
        for snapshot in snapshots:
            if snapshot.mode == mode:
                states.setdefault(snapshot.name, []).append((subtask, snapshot))
    return [states[name] for name in sorted(states)]


def _keep(result: list[list[State]], written: list[tuple[int, State]]) -> None:
    for subtask, snapshot in written:
        result[subtask].append(snapshot)


def _split(result: list[list[State]], elements: list[tuple[Any, State]], first_odd: int) -> int:
    """Deal out contiguous shares, beginning at subtask ``first_odd``; gives the subtask at which the next begins."""
    base, odd = divmod(len(elements), len(result))
    position = 0
    for step in range(len(result)):
        size = base + (1 if step < odd else 0)
        result[(first_odd + step) % len(result)].extend(_snapshots(elements[position : position + size]))
        position += size
    return (first_odd + odd) % len(result)


def _elements(written: list[tuple[int, State]]) -> list[tuple[Any, State]]:
    """All elements, each with the snapshot it comes from."""
    return [(element, snapshot) for _, snapshot in written for element in snapshot.elements]


def _snapshots(elements: list[tuple[Any, State]]) -> Iterator[State]:
    """One snapshot for each run of elements that were written with the same types, in the same version.

    Subtasks differ in them when only some have asked for the state since they changed.
    """
    for _, run in groupby(elements, key=lambda element: (element[1].serializers, element[1].version)):
        items = list(run)
        yield msgspec.structs.replace(items[0][1], elements=tuple(data for data, _ in items))
