"""What a function yields stays as it was then, whatever becomes of the object."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from holdfast.runtime.output_tag import OutputTag
from holdfast.runtime.yielded import copied
from holdfast.types.row import Row, RowKind


@dataclass
class Order:
    number: int
    lines: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Slotted:
    number: int
    lines: list[str] = field(default_factory=list)


class Struct(msgspec.Struct):
    number: int
    lines: list[str]


class Counted(list):
    """A class of a user's with content beside its fields."""


class Own:
    """A class that says how it is copied."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __deepcopy__(self, memo: Any) -> Own:
        return Own(self.number + 100)


@pytest.mark.parametrize(
    ("value", "change"),
    [
        ([1, [2]], lambda row: row[1].append(3)),
        ({"a": [1]}, lambda row: row["a"].append(2)),
        ((1, [2]), lambda row: row[1].append(3)),
        ((OutputTag("tag"), Row(1, 2)), lambda row: row[1].__setitem__(0, 9)),
        (Row(a=1, b=[2]), lambda row: row["b"].append(3)),
        (Row(1, Row(2)), lambda row: row[1].__setitem__(0, 9)),
        (Row.of_kind(RowKind.DELETE, 1), lambda row: row.set_row_kind(RowKind.INSERT)),
        (Order(1, ["a"]), lambda row: row.lines.append("b")),
        (Slotted(1, ["a"]), lambda row: row.lines.append("b")),
        (Struct(1, ["a"]), lambda row: row.lines.append("b")),
        (Counted([1]), lambda row: row.append(2)),
        ({1, 2}, lambda row: row.add(3)),
        (bytearray(b"a"), lambda row: row.append(66)),
    ],
)
def test_a_copy_does_not_change_with_the_object(value: Any, change: Any) -> None:
    kept, other = copied(value), copied(value)
    assert type(kept) is type(value) and kept == value
    change(value)
    assert kept == other != value


def test_names_and_kind_of_a_row_are_kept() -> None:
    row = copied(Row.of_kind(RowKind.UPDATE_AFTER, get_row_kind=1, b=2))
    assert row["get_row_kind"] == 1 and row.b == 2
    assert Row.get_row_kind(row) is RowKind.UPDATE_AFTER


@pytest.mark.parametrize("value", [None, 1, "a", (1, "a", None), (), b"x", (OutputTag("tag"), 1)])
def test_what_nothing_can_change_is_not_copied(value: Any) -> None:
    assert copied(value) is value


def test_a_class_that_says_how_it_is_copied_is_asked() -> None:
    assert copied(Own(1)).number == 101


def test_what_cannot_be_copied_is_shared() -> None:
    lock = threading.Lock()
    assert copied([1, lock]) == [1, lock]
