"""Keys over a change of their type: what is allowed keeps keys apart, and what keeps its hash keeps its subtask."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.state.keys import KeyCodec
from holdfast.types.type_changes import keeps_hash, key_change
from holdfast.types.typeinfo import TypeInformation, Types

BYTE, SHORT, INT, LONG = Types.BYTE(), Types.SHORT(), Types.INT(), Types.LONG()
STRING, CHAR = Types.STRING(), Types.CHAR()

_bytes = st.integers(-128, 127)
#: Pairs of a type and one that it may become as a key, with values of the first.
_leaves: list[tuple[TypeInformation, TypeInformation, st.SearchStrategy[Any]]] = [
    *((old, new, _bytes) for old, new in [(BYTE, BYTE), (BYTE, SHORT), (BYTE, INT), (SHORT, INT), (INT, LONG)]),
    (CHAR, STRING, st.characters(codec="utf-8").map(str)),
    (STRING, STRING, st.text(max_size=5)),
    (Types.FLOAT(), Types.DOUBLE(), st.floats(width=32, allow_nan=False)),
    (Types.DECIMAL(4, 2), Types.DECIMAL(9, 2), st.integers(-9999, 9999).map(lambda n: Decimal(n).scaleb(-2))),
    (Types.DECIMAL(4, 2), Types.DECIMAL(25, 3), st.integers(-9999, 9999).map(lambda n: Decimal(n).scaleb(-2))),
]

Change = tuple[TypeInformation, TypeInformation, st.SearchStrategy[Any]]


def _named(parts: list[Change], order: list[int], added: int) -> Change:
    """Rows with these fields, which come in another order, behind new ones."""
    names = [f"field{number}" for number in range(len(parts))]
    old = Types.ROW_NAMED(names, [part[0] for part in parts])
    new_names = [*(f"new{number}" for number in range(added)), *(names[number] for number in order)]
    new = Types.ROW_NAMED(new_names, [*[STRING] * added, *(parts[number][1] for number in order)])
    return old, new, st.tuples(*(st.none() | part[2] for part in parts))


def _composites(inner: st.SearchStrategy[Change]) -> st.SearchStrategy[Change]:
    several = st.lists(inner, min_size=1, max_size=3)
    tuples = several.map(
        lambda parts: (
            Types.TUPLE([part[0] for part in parts]),
            Types.TUPLE([part[1] for part in parts]),
            st.tuples(*(st.none() | part[2] for part in parts)),
        )
    )
    lists = inner.map(lambda one: (Types.LIST(one[0]), Types.LIST(one[1]), st.lists(st.none() | one[2], max_size=3)))
    rows = several.flatmap(
        lambda parts: st.tuples(st.permutations(range(len(parts))), st.integers(0, 2)).map(
            lambda drawn: _named(parts, drawn[0], drawn[1])
        )
    )
    return st.one_of(tuples, lists, rows)


changes = st.recursive(st.sampled_from(_leaves), _composites, max_leaves=4)


@given(changes, st.data())
def test_keys_follow_their_type(change: Change, data: st.DataObject) -> None:
    old, new, values = change
    rewrite = key_change(old, new)
    assert rewrite is not None
    before, after = KeyCodec.for_type(old.bare()), KeyCodec.for_type(new)
    first, second = data.draw(values), data.draw(values)
    migrated = [rewrite(before.decode(before.encode(key))) for key in (first, second)]
    same = before.encode(first) == before.encode(second)
    assert (after.encode(migrated[0]) == after.encode(migrated[1])) is same
    if keeps_hash(old, new):
        assert [after.hash(key) for key in migrated] == [before.hash(key) for key in (first, second)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (INT, LONG),
        (Types.FLOAT(), Types.DOUBLE()),
        (Types.DECIMAL(4, 2), Types.DECIMAL(9, 3)),
        (Types.DECIMAL(4, 2), Types.DECIMAL(20, 2)),
        (Types.ROW_NAMED(["a", "b"], [INT, STRING]), Types.ROW_NAMED(["b", "a"], [STRING, INT])),
        (Types.LIST(INT), Types.LIST(LONG)),
        (Types.TUPLE([STRING, INT]), Types.TUPLE([STRING, LONG])),
        (
            Types.AVRO({"type": "record", "name": "K", "fields": [{"name": "a", "type": "int"}]}),
            Types.AVRO(
                {
                    "type": "record",
                    "name": "K",
                    "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "int", "default": 1}],
                }
            ),
        ),
    ],
    ids=str,
)
def test_types_that_hash_keys_in_another_way(old: TypeInformation, new: TypeInformation) -> None:
    assert key_change(old, new) is not None
    assert not keeps_hash(old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (LONG, INT),
        (INT, STRING),
        (Types.ROW_NAMED(["a", "b"], [INT, INT]), Types.ROW_NAMED(["a"], [INT])),
        (Types.LIST(Types.ROW_NAMED(["a", "b"], [INT, INT])), Types.LIST(Types.ROW_NAMED(["a"], [INT]))),
        (Types.PICKLED_BYTE_ARRAY(), LONG),
    ],
    ids=str,
)
def test_keys_that_could_become_one_are_refused(old: TypeInformation, new: TypeInformation) -> None:
    assert key_change(old, new) is None
