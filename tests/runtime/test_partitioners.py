"""Rows go to the subtask that owns their key group, by column and by selector alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import FunctionError, NullKeyError, StateTypeError
from holdfast.runtime.batch import Batch
from holdfast.runtime.custom_partitioner import Custom
from holdfast.runtime.partitioners import (
    COLUMNS,
    ENCODED,
    KEY_COLUMN,
    LONG,
    STRING,
    Broadcast,
    Forward,
    Global,
    KeyGroupHash,
    KeyReader,
    Rebalance,
    Rescale,
    Route,
    Shuffle,
)
from holdfast.state.keygroups import key_group, subtask_of
from holdfast.state.keys import KeyCodec
from holdfast.types.arrow import row_writer
from holdfast.types.instant import Instant
from holdfast.types.typeinfo import TypeInformation, Types

WHERE = "operator 'Average', subtask 1/3"
_int32 = st.integers(-(1 << 31), (1 << 31) - 1)
_int64 = st.integers(-(1 << 63), (1 << 63) - 1)
_layouts = st.tuples(st.integers(1, 9), st.sampled_from([9, 16, 128, 32768]))


def route(partitioner: KeyGroupHash, parallelism: int, rows: list[Any], row_type: TypeInformation) -> Route:
    return partitioner.bind(0, parallelism, WHERE).route(Batch(rows), row_writer(row_type)(rows))


def owner(codec: KeyCodec, key: Any, max_parallelism: int, parallelism: int) -> int:
    return subtask_of(key_group(codec.hash(key), max_parallelism), max_parallelism, parallelism)


def read_keys(partitioner: KeyGroupHash, found: Route, rows: list[Any], row_type: TypeInformation) -> list[Any]:
    wire = row_writer(row_type)(rows)
    if found.keys.column is not None:
        wire = wire.append_column(KEY_COLUMN, found.keys.column)
    return KeyReader(partitioner).read(found.keys.form, wire)


_KEYS: list[tuple[str, TypeInformation, st.SearchStrategy[Any]]] = [
    ("int", Types.INT(), _int32),
    ("long", Types.LONG(), _int64),
    ("string", Types.STRING(), st.text(max_size=8)),
    ("double", Types.DOUBLE(), st.floats(allow_nan=False)),
    ("boolean", Types.BOOLEAN(), st.booleans()),
    ("tuple", Types.TUPLE([Types.STRING(), Types.INT()]), st.tuples(st.text(max_size=4), _int32)),
]


@pytest.mark.parametrize(("key_type", "keys"), [k[1:] for k in _KEYS], ids=[k[0] for k in _KEYS])
@given(data=st.data(), layout=_layouts)
def test_selected_keys_of_a_declared_type_follow_the_key_group_arithmetic(
    key_type: TypeInformation, keys: st.SearchStrategy[Any], data: st.DataObject, layout: tuple[int, int]
) -> None:
    parallelism, maximum = layout
    rows = data.draw(st.lists(keys, min_size=1, max_size=8))
    partitioner = KeyGroupHash(key_type, maximum, selector=lambda row: row)
    found = route(partitioner, parallelism, rows, Types.PICKLED_BYTE_ARRAY())
    codec = KeyCodec.for_type(key_type)
    assert found.targets is not None
    assert found.targets.tolist() == [owner(codec, row, maximum, parallelism) for row in rows]
    assert read_keys(partitioner, found, rows, Types.PICKLED_BYTE_ARRAY()) == [codec.normalise(row) for row in rows]


@given(
    st.lists(st.tuples(_int32, st.text(max_size=6)), min_size=1, max_size=8),
    st.sampled_from(
        [(Types.INT(), ("f0",)), (Types.STRING(), ("f1",)), (Types.TUPLE([Types.STRING(), Types.INT()]), ("f1", "f0"))]
    ),
    _layouts,
)
def test_column_keys_go_where_the_same_keys_by_selector_go(
    rows: list[tuple[int, str]], key: tuple[TypeInformation, tuple[str, ...]], layout: tuple[int, int]
) -> None:
    parallelism, maximum = layout
    key_type, columns = key
    row_type = Types.TUPLE([Types.INT(), Types.STRING()])
    positions = [int(name[1]) for name in columns]
    by_column = KeyGroupHash(key_type, maximum, columns)
    found = route(by_column, parallelism, rows, row_type)
    single = len(positions) == 1
    by_selector = KeyGroupHash(
        key_type, maximum, selector=lambda row: row[positions[0]] if single else tuple(row[p] for p in positions)
    )
    expected = route(by_selector, parallelism, rows, row_type)
    assert found.keys.form == COLUMNS
    assert found.targets is not None and expected.targets is not None
    assert found.targets.tolist() == expected.targets.tolist()
    assert read_keys(by_column, found, rows, row_type) == read_keys(by_selector, expected, rows, row_type)


@given(
    st.lists(_int64 | st.text(max_size=5) | st.booleans() | st.tuples(_int64, st.text(max_size=3)), min_size=1),
    _layouts,
)
def test_undeclared_keys_of_any_mixture(rows: list[Any], layout: tuple[int, int]) -> None:
    parallelism, maximum = layout
    partitioner = KeyGroupHash(Types.PICKLED_BYTE_ARRAY(), maximum, selector=lambda row: row)
    found = route(partitioner, parallelism, rows, Types.PICKLED_BYTE_ARRAY())
    codec = KeyCodec.for_type(None)
    assert found.targets is not None
    assert found.targets.tolist() == [owner(codec, row, maximum, parallelism) for row in rows]
    keys = read_keys(partitioner, found, rows, Types.PICKLED_BYTE_ARRAY())
    assert list(map(codec.encode, keys)) == list(map(codec.encode, rows))


@pytest.mark.parametrize(
    ("key_type", "keys", "form"),
    [
        (Types.PICKLED_BYTE_ARRAY(), [1, 2], LONG),
        (Types.PICKLED_BYTE_ARRAY(), ["a", "b"], STRING),
        (Types.PICKLED_BYTE_ARRAY(), [1, "a"], ENCODED),
        (Types.PICKLED_BYTE_ARRAY(), [True, False], ENCODED),
        (Types.INT(), [1, 2], LONG),
        (Types.LONG(), [1, 2], LONG),
        (Types.STRING(), ["a"], STRING),
        (Types.DOUBLE(), [1, 2], ENCODED),
        (Types.INSTANT(), [Instant(1, 2)], ENCODED),
    ],
)
def test_plain_keys_travel_as_a_plain_column(key_type: TypeInformation, keys: list[Any], form: str) -> None:
    partitioner = KeyGroupHash(key_type, 128, selector=lambda row: row)
    assert route(partitioner, 2, keys, Types.PICKLED_BYTE_ARRAY()).keys.form == form


def test_an_int_for_a_declared_double_is_the_same_key_as_the_double() -> None:
    partitioner = KeyGroupHash(Types.DOUBLE(), 128, selector=lambda row: row)
    rows = [1, 1.0]
    found = route(partitioner, 128, rows, Types.PICKLED_BYTE_ARRAY())
    assert found.targets is not None and len(set(found.targets.tolist())) == 1
    assert [type(k) for k in read_keys(partitioner, found, rows, Types.PICKLED_BYTE_ARRAY())] == [float, float]


def test_a_key_beyond_its_declared_type_names_operator_and_row() -> None:
    partitioner = KeyGroupHash(Types.INT(), 128, selector=lambda row: row[0])
    with pytest.raises(StateTypeError, match=r"operator 'Average', subtask 1/3: .*row was \(2147483648, 'x'\)"):
        route(partitioner, 2, [(1, "a"), (1 << 31, "x")], Types.PICKLED_BYTE_ARRAY())


@pytest.mark.parametrize("key", [lambda row: row[1], lambda row: None])
def test_a_null_key_of_a_selector_names_operator_and_row(key: Callable[[Any], Any]) -> None:
    partitioner = KeyGroupHash(Types.STRING(), 128, selector=key)
    with pytest.raises(NullKeyError, match=r"operator 'Average', subtask 1/3: the key of row \(2, None\) is None"):
        route(partitioner, 2, [(2, None)], Types.PICKLED_BYTE_ARRAY())


def test_a_null_key_column_names_operator_column_and_row() -> None:
    row_type = Types.TUPLE([Types.INT(), Types.STRING()])
    partitioner = KeyGroupHash(Types.STRING(), 128, ("f1",))
    with pytest.raises(
        NullKeyError, match=r"operator 'Average', subtask 1/3: the key column 'f1' is null in row \(2, None\)"
    ):
        route(partitioner, 2, [(1, "a"), (2, None)], row_type)


def test_a_null_field_of_a_composite_column_key_is_a_null_field_and_no_null_key() -> None:
    row_type = Types.TUPLE([Types.INT(), Types.STRING()])
    key_type = Types.TUPLE([Types.INT(), Types.STRING()])
    rows = [(1, None), (1, "a")]
    partitioner = KeyGroupHash(key_type, 128, ("f0", "f1"))
    by_column = route(partitioner, 128, rows, row_type)
    by_selector = route(KeyGroupHash(key_type, 128, selector=lambda row: row), 128, rows, row_type)
    assert by_column.targets is not None and by_selector.targets is not None
    assert by_column.targets.tolist() == by_selector.targets.tolist()
    assert read_keys(partitioner, by_column, rows, row_type) == rows


def test_a_selector_that_raises_names_operator_and_row() -> None:
    partitioner = KeyGroupHash(Types.STRING(), 128, selector=lambda row: row["x"])
    told = r"operator 'Average', subtask 1/3: the key selector raised KeyError: 'x'; the row was \{'y': 1\}"
    with pytest.raises(FunctionError, match=told):
        route(partitioner, 2, [{"x": "a"}, {"y": 1}], Types.PICKLED_BYTE_ARRAY())


def bound(partitioner: Any, subtask: int, parallelism: int) -> Callable[[int], Route]:
    worker = partitioner.bind(subtask, parallelism, WHERE)
    columns = row_writer(Types.LONG())([0])
    return lambda count: worker.route(Batch([0] * count), columns)


def test_forward_global_and_broadcast_need_no_look_at_the_rows() -> None:
    assert bound(Forward(), 2, 4)(3) == Route(single=2)
    assert bound(Global(), 2, 4)(3) == Route(single=0)
    everybody = bound(Broadcast(), 2, 4)(3)
    assert everybody.targets is None and everybody.single is None
    assert [p.chainable for p in (Forward(), Global(), Broadcast(), Rebalance())] == [True, False, False, False]


def drawn(batches: list[int], parallelism: int, subtask: int = 0, seed: tuple[int, ...] = (1, 1, 0)) -> list[int]:
    worker = Shuffle().bind(subtask, parallelism, WHERE)
    worker.begin_epoch(*seed)
    found: list[int] = []
    for rows in batches:
        targets = worker.route(Batch([0] * rows), row_writer(Types.LONG())([0])).targets
        assert targets is not None
        found += targets.tolist()
    return found


@given(st.lists(st.integers(0, 40), min_size=1, max_size=5), st.integers(1, 9), st.integers(0, 8))
def test_shuffle_draws_the_same_for_the_same_rows_however_they_are_cut(
    batches: list[int], parallelism: int, subtask: int
) -> None:
    found = drawn(batches, parallelism, subtask)
    assert found == drawn([sum(batches)], parallelism, subtask)
    assert set(found) <= set(range(parallelism))


def test_shuffle_is_random_even_and_different_by_sender_epoch_attempt_and_edge() -> None:
    found = drawn([6_000], 3)
    counts = np.bincount(found)
    assert counts.min() > 1_850 and found[:30] != [n % 3 for n in range(30)]
    others = [drawn([6_000], 3, 1), *(drawn([6_000], 3, seed=seed) for seed in ((2, 1, 0), (1, 2, 0), (1, 1, 1)))]
    assert len({tuple(each) for each in (found, *others)}) == 5


@given(st.lists(st.integers(0, 7), max_size=6), st.integers(1, 5), st.integers(0, 9))
def test_rebalance_goes_on_where_the_batch_before_ended(batches: list[int], parallelism: int, subtask: int) -> None:
    deal = bound(Rebalance(), subtask, parallelism)
    dealt: list[int] = []
    for count in batches:
        targets = deal(count).targets
        assert targets is not None
        dealt += targets.tolist()
    assert dealt == [(subtask + i) % parallelism for i in range(sum(batches))]
    counts = np.bincount(dealt, minlength=parallelism) if dealt else np.zeros(parallelism)
    assert counts.max() - counts.min() <= 1


@pytest.mark.parametrize(
    ("senders", "receivers", "expected"),
    [
        (2, 4, [{0, 1}, {2, 3}]),
        (4, 2, [{0}, {0}, {1}, {1}]),
        (3, 3, [{0}, {1}, {2}]),
        (2, 5, [{0, 1}, {2, 3, 4}]),
        (5, 2, [{0}, {0}, {0}, {1}, {1}]),
        (1, 3, [{0, 1, 2}]),
    ],
)
def test_rescale_sends_each_subtask_rows_of_few(senders: int, receivers: int, expected: list[set[int]]) -> None:
    batch = Batch(list(range(20)))
    for sender, targets in enumerate(expected):
        bound = Rescale(senders).bind(sender, receivers, "here")
        route = bound.route(batch, None)
        assert route.targets is not None
        assert set(route.targets.tolist()) == targets


class TestCustom:
    def test_rows_go_where_the_function_says(self) -> None:
        bound = Custom(lambda key, n: key % n, lambda row: row + 1).bind(0, 3, "here")
        assert bound.route(Batch([0, 1, 2]), None).targets.tolist() == [1, 2, 0]

    @pytest.mark.parametrize("answer", [3, -1, None, 1.5, "x"])
    def test_what_is_no_subtask(self, answer: object) -> None:
        bound = Custom(lambda key, n: answer, lambda row: row).bind(0, 3, "here")
        with pytest.raises(FunctionError, match=r"here: the custom partitioner .*row 7"):
            bound.route(Batch([7]), None)
