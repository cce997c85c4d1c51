from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import ConfigurationError
from holdfast.state.handles import DistributionMode, KeyedSnapshot, ListStateSnapshot
from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.redistribution import OperatorState, assign_keyed, redistribute

SPLIT, UNION, BROADCAST = DistributionMode.SPLIT_DISTRIBUTE, DistributionMode.UNION, DistributionMode.BROADCAST
TYPES = {"element": {"version": 1}}
RANDOM_LAYOUTS = 10_000


def state(name: str, mode: DistributionMode, *elements: str) -> ListStateSnapshot:
    return ListStateSnapshot(name, mode, TYPES, tuple(element.encode() for element in elements))


def elements(states: OperatorState, name: str) -> list[str]:
    return [element.decode() for snapshot in states if snapshot.name == name for element in snapshot.elements]


def shares(new: list[OperatorState], name: str) -> list[list[str]]:
    return [elements(states, name) for states in new]


def test_split_gives_contiguous_shares_in_the_order_of_the_old_subtasks() -> None:
    old = [(state("s", SPLIT, "a", "b", "c"),), (state("s", SPLIT, "d", "e"),)]
    assert shares(redistribute(old, 3), "s") == [["a", "b"], ["c", "d"], ["e"]]
    assert shares(redistribute(old, 1), "s") == [["a", "b", "c", "d", "e"]]


def test_split_under_the_same_parallelism_stays_as_it_was_however_uneven() -> None:
    old = [(state("s", SPLIT, "a", "b", "c"),), (), (state("s", SPLIT),)]
    assert redistribute(old, 3) == old


def test_odd_elements_of_the_next_state_go_to_the_next_subtask() -> None:
    old = [(state("b", SPLIT, "b0", "b1", "b2", "b3"), state("a", SPLIT, "a0", "a1"), state("c", SPLIT, "c0"))]
    new = redistribute(old, 3)
    assert shares(new, "a") == [["a0"], ["a1"], []]
    assert shares(new, "b") == [["b2"], ["b3"], ["b0", "b1"]]
    assert shares(new, "c") == [["c0"], [], []]


def test_fewer_elements_than_subtasks_leave_the_state_absent() -> None:
    new = redistribute([(state("s", SPLIT, "a"),)], 2)
    assert new == [(state("s", SPLIT, "a"),), ()]


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_union_gives_everything_to_everybody_also_under_the_same_parallelism(parallelism: int) -> None:
    old = [(state("u", UNION, "a"),), (state("u", UNION, "b", "c"),)]
    assert shares(redistribute(old, parallelism), "u") == [["a", "b", "c"]] * parallelism


def test_broadcast_keeps_the_copy_of_each_subtask_or_deals_the_copies_in_turn() -> None:
    old: list[OperatorState] = [(state("m", BROADCAST, "k", "0"),), (state("m", BROADCAST, "k", "1"),)]
    assert redistribute(old, 2) == old
    assert shares(redistribute(old, 5), "m") == [["k", "0"], ["k", "1"], ["k", "0"], ["k", "1"], ["k", "0"]]
    assert shares(redistribute(old, 1), "m") == [["k", "0"]]


def test_broadcast_that_only_some_subtasks_wrote_reaches_all_under_the_same_parallelism() -> None:
    old: list[OperatorState] = [(), (state("m", BROADCAST, "k", "1"),), (state("m", BROADCAST, "k", "2"),)]
    assert shares(redistribute(old, 3), "m") == [["k", "1"], ["k", "2"], ["k", "1"]]


def test_modes_come_in_a_fixed_order() -> None:
    old = [(state("b", BROADCAST, "k", "v"), state("a", UNION, "x"), state("z", SPLIT, "y"))]
    assert [[snapshot.name for snapshot in states] for states in redistribute(old, 2)] == [["z", "a", "b"], ["a", "b"]]


def test_nothing_written_is_nothing_to_spread() -> None:
    assert redistribute([(), ()], 3) == [(), (), ()]
    assert redistribute([], 2) == [(), ()]


def test_elements_of_different_types_stay_apart() -> None:
    other = ListStateSnapshot("s", SPLIT, {"element": {"version": 2}}, (b"b", b"c"))
    new = redistribute([(state("s", SPLIT, "a"),), (other,), (state("s", SPLIT, "d"),)], 2)
    assert new == [
        (state("s", SPLIT, "a"), ListStateSnapshot("s", SPLIT, other.serializers, (b"b",))),
        (ListStateSnapshot("s", SPLIT, other.serializers, (b"c",)), state("s", SPLIT, "d")),
    ]


def test_parallelism_is_checked() -> None:
    with pytest.raises(ConfigurationError, match="parallelism is 0"):
        redistribute([()], 0)


def random_layout(rng: random.Random) -> list[OperatorState]:
    """Up to eight subtasks, some of which wrote some of six states; elements tell state, writer and position."""
    names = {f"{mode.value.lower()}-{index}": mode for mode in DistributionMode for index in range(2)}
    layout: list[OperatorState] = []
    for subtask in range(rng.randint(1, 8)):
        states = []
        for name, mode in rng.sample(sorted(names.items()), len(names)):
            if rng.random() < 0.8:
                items = (f"{name}/{subtask}/{index}" for index in range(rng.choice([0, 1, 1, 2, 5, 13])))
                states.append(state(name, mode, *items))
        layout.append(tuple(states))
    return layout


def split_walk(new: list[OperatorState], name: str, first: int) -> list[str]:
    """Elements of a split state, read from the subtask at which its shares begin."""
    return [element for step in range(len(new)) for element in elements(new[(first + step) % len(new)], name)]


def check_split(old: list[OperatorState], new: list[OperatorState], names: list[str]) -> None:
    odd_elements: Counter[int] = Counter()
    first = 0
    for name in names:
        written = [element for states in old for element in elements(states, name)]
        if len(old) == len(new):
            assert shares(new, name) == shares(old, name)
            continue
        assert split_walk(new, name, first) == written  # nothing lost, nothing twice, old order, contiguous
        sizes = [len(share) for share in shares(new, name)]
        assert max(sizes) - min(sizes) <= 1
        odd = len(written) % len(new)
        odd_elements.update((first + step) % len(new) for step in range(odd))
        first = (first + odd) % len(new)
    counts = [odd_elements[subtask] for subtask in range(len(new))]
    assert max(counts) - min(counts) <= 1  # balanced over all states together


def test_random_layouts_conserve_balance_and_order() -> None:
    rng = random.Random(20)
    rescaled = 0
    for _ in range(RANDOM_LAYOUTS):
        old = random_layout(rng)
        parallelism = rng.randint(1, 9)
        new = redistribute(old, parallelism)
        assert len(new) == parallelism
        rescaled += parallelism != len(old)
        names = sorted({snapshot.name for states in old for snapshot in states})
        check_split(old, new, [name for name in names if name.startswith("split")])
        for name in (name for name in names if name.startswith("union")):
            assert (
                shares(new, name) == [[element for states in old for element in elements(states, name)]] * parallelism
            )
        for name in (name for name in names if name.startswith("broadcast")):
            writers = [states for states in old if any(snapshot.name == name for snapshot in states)]
            assert shares(new, name) == [elements(writers[i % len(writers)], name) for i in range(parallelism)]
    assert rescaled > RANDOM_LAYOUTS // 2


@given(st.lists(st.integers(0, 40), min_size=1, max_size=12), st.integers(1, 40))
def test_there_and_back_again_keeps_the_order(sizes: list[int], parallelism: int) -> None:
    old = [(state("s", SPLIT, *(f"{subtask}.{i}" for i in range(size))),) for subtask, size in enumerate(sizes)]
    back = redistribute(redistribute(redistribute(old, parallelism), 1), 1)
    assert elements(back[0], "s") == [element for states in old for element in elements(states, "s")]


def keyed(first: int, last: int) -> KeyedSnapshot:
    return KeyedSnapshot(first, last, files=(), states=(), key_serializer={}, backend="heap")


def test_keyed_snapshots_that_intersect_are_assigned() -> None:
    old = [keyed(0, 42), keyed(43, 85), keyed(86, 127)]
    assert assign_keyed(old, KeyGroupRange(0, 63)) == old[:2]
    assert assign_keyed(old, KeyGroupRange(43, 85)) == old[1:2]
    assert assign_keyed(old, KeyGroupRange(85, 86)) == old[1:]


def test_keyed_rescaling_gives_every_key_group_to_one_subtask_of_random_layouts() -> None:
    rng = random.Random(21)
    for _ in range(RANDOM_LAYOUTS):
        max_parallelism = rng.randint(1, 24)
        before, after = rng.randint(1, max_parallelism), rng.randint(1, max_parallelism)
        ranges = [KeyGroupRange.of(subtask, max_parallelism, before) for subtask in range(before)]
        old = [keyed(owned.start, owned.end) for owned in ranges]
        restored: list[int] = []
        for subtask in range(after):
            owned = KeyGroupRange.of(subtask, max_parallelism, after)
            for snapshot in assign_keyed(old, owned):
                cut = KeyGroupRange(snapshot.first_key_group, snapshot.last_key_group).intersection(owned)
                assert cut is not None
                restored.extend(cut)
        assert restored == list(range(max_parallelism))
