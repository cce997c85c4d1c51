"""Whatever goes into a router comes out of the readers: rows, keys, times, order."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from holdfast.runtime.batch import Batch
from holdfast.runtime.partitioners import KeyGroupHash, Partitioner, Rebalance
from holdfast.runtime.plan import TaskOptions
from holdfast.state.keygroups import key_group, subtask_of
from holdfast.state.keys import KeyCodec
from holdfast.types.row import Row
from holdfast.types.typeinfo import TypeInformation, Types
from tests.runtime.wires import Wire, edge_of

_int64 = st.integers(-(1 << 63), (1 << 63) - 1)
_int32 = st.integers(-(1 << 31), (1 << 31) - 1)

_TYPES: dict[str, tuple[TypeInformation, st.SearchStrategy[Any]]] = {
    "long": (Types.LONG(), _int64),
    "string": (Types.STRING(), st.text(max_size=20)),
    "double": (Types.DOUBLE(), st.floats(allow_nan=False)),
    "bytes": (Types.BYTES(), st.binary(max_size=20)),
    "tuple": (Types.TUPLE([Types.INT(), Types.STRING()]), st.tuples(_int32, st.none() | st.text(max_size=8))),
    "row": (
        Types.ROW_NAMED(["a", "b"], [Types.LONG(), Types.BOOLEAN()]),
        st.builds(lambda a, b: Row(a=a, b=b), _int64, st.booleans()),
    ),
    "list": (Types.LIST(Types.LONG()), st.lists(_int64, max_size=4)),
    "map": (Types.MAP(Types.STRING(), Types.LONG()), st.dictionaries(st.text(max_size=3), _int64, max_size=3)),
    "pickled": (
        Types.PICKLED_BYTE_ARRAY(),
        st.recursive(
            st.none() | st.booleans() | _int64 | st.text(max_size=5) | st.floats(allow_nan=False),
            lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
            max_leaves=4,
        ),
    ),
}
_options = st.builds(TaskOptions, envelope_bytes=st.sampled_from([1, 300, 1 << 20]), max_row_bytes=st.just(1 << 20))
_times = st.integers(-(1 << 40), 1 << 40)


def cut(data: st.DataObject, rows: list[Any]) -> list[slice]:
    """Any way to cut rows into batches."""
    ends = sorted(data.draw(st.sets(st.integers(0, len(rows)), max_size=5)) | {len(rows)})
    return [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]


def received(wire: Wire, batches: list[Batch], joined: bool = False) -> list[list[tuple[Any, ...]]]:
    """``joined``: those that came in one form are made one."""
    sent = wire.epoch(*batches)
    found: list[list[tuple[Any, ...]]] = []
    for target in range(wire.edge.target_parallelism):
        rows: list[tuple[Any, ...]] = []
        came: Iterable[Batch] = wire.read(target, sent)
        if joined:
            came = list(Batch.joined(came))
            assert all(one._form is not other._form for one, other in pairwise(came))
        for batch in came:
            count = len(batch)
            columns = [c if c is not None else [None] * count for c in (batch.keys, batch.timestamps, batch.watermarks)]
            rows += zip(batch.values, *columns, strict=True)
        found.append(rows)
    return found


@given(st.data(), st.sampled_from(sorted(_TYPES)), st.integers(1, 4), st.booleans(), _options)
def test_rows_and_times_come_back(
    data: st.DataObject, kind: str, targets: int, event_time: bool, options: TaskOptions
) -> None:
    type_info, values = _TYPES[kind]
    rows = data.draw(st.lists(values, max_size=30))
    times = data.draw(st.lists(_times, min_size=len(rows), max_size=len(rows))) if event_time else None
    partitioner: Partitioner = Rebalance()
    wire = Wire(edge_of(partitioner, type_info, targets, event_time), options)
    batches = [
        Batch(rows[s], None if times is None else times[s], None if times is None else [t - 1 for t in times[s]])
        for s in cut(data, rows)
    ]
    expected: list[list[tuple[Any, ...]]] = [[] for _ in range(targets)]
    for index, row in enumerate(rows):
        time = None if times is None else times[index]
        expected[(1 + index) % targets].append((row, None, time, None if time is None else time - 1))
    assert received(wire, batches) == expected


_KEY_TYPES: dict[str, tuple[TypeInformation, st.SearchStrategy[Any]]] = {
    "int": (Types.INT(), _int32),
    "string": (Types.STRING(), st.text(max_size=6)),
    "tuple": (Types.TUPLE([Types.LONG(), Types.STRING()]), st.tuples(_int64, st.text(max_size=3))),
    "undeclared": (Types.PICKLED_BYTE_ARRAY(), _int64 | st.text(max_size=4) | st.tuples(_int64) | st.booleans()),
}


@given(st.data(), st.sampled_from(sorted(_KEY_TYPES)), st.integers(1, 5), st.booleans(), _options)
def test_keys_come_back_at_the_subtask_that_owns_them(
    data: st.DataObject, kind: str, targets: int, event_time: bool, options: TaskOptions
) -> None:
    key_type, keys = _KEY_TYPES[kind]
    pool = data.draw(st.lists(keys, min_size=1, max_size=5))
    rows = [(data.draw(st.sampled_from(pool)), n) for n in range(data.draw(st.integers(0, 30)))]
    times = [n * 10 for n in range(len(rows))] if event_time else None
    wire = Wire(
        edge_of(
            KeyGroupHash(key_type, 16, selector=lambda row: row[0]), Types.PICKLED_BYTE_ARRAY(), targets, event_time
        ),
        options,
    )
    codec = KeyCodec.for_type(key_type)
    batches = [
        Batch(rows[s], None if times is None else times[s], None if times is None else times[s])
        for s in cut(data, rows)
    ]
    expected: list[list[tuple[Any, ...]]] = [[] for _ in range(targets)]
    for key, n in rows:
        target = subtask_of(key_group(codec.hash(key), 16), 16, targets)
        time = None if times is None else times[n]
        expected[target].append(((key, n), codec.encode(key), time, time))
    came = received(wire, batches, joined=data.draw(st.booleans()))
    found = [[(row, codec.encode(key), *rest) for row, key, *rest in target] for target in came]
    # The rows of a target come in the order in which they were sent, and so do those of one key.
    assert found == expected


@given(st.data(), st.integers(1, 4), st.booleans())
def test_column_keys_come_back(data: st.DataObject, targets: int, composite: bool) -> None:
    row_type = Types.ROW_NAMED(["id", "n", "name"], [Types.LONG(), Types.INT(), Types.STRING()])
    drawn = data.draw(st.lists(st.tuples(_int64, st.text(max_size=3)), max_size=20))
    rows = [Row(id=number, n=n, name=name) for n, (number, name) in enumerate(drawn)]
    columns = ("name", "id") if composite else ("name",)
    key_type = Types.TUPLE([Types.STRING(), Types.LONG()]) if composite else Types.STRING()
    wire = Wire(edge_of(KeyGroupHash(key_type, 16, columns), row_type, targets))
    codec = KeyCodec.for_type(key_type)
    expected: list[list[Any]] = [[] for _ in range(targets)]
    for row in rows:
        key = (row.name, row.id) if composite else row.name
        expected[subtask_of(key_group(codec.hash(key), 16), 16, targets)].append((row, key))
    assert [[(row, key) for row, key, *_ in target] for target in received(wire, [Batch(rows)])] == expected
