"""Rows behave as PyFlink's and are cheap to make."""

from __future__ import annotations

import copy
import pickle
import sys

import pytest

from holdfast.types.key_undeclared import UndeclaredForm
from holdfast.types.row import Row, RowKind
from holdfast.types.typeinfo import Types

ROW = Types.ROW([Types.INT(), Types.STRING()])


def test_values_by_position_name_and_attribute():
    row = Row(b=2, a=1)
    assert (row[0], row["b"], row.a, list(row), len(row)) == (2, 2, 1, [2, 1], 2)
    assert row[0:2] == [2, 1]
    row["a"], row[0] = 10, 20
    assert row == Row(a=10, b=20)
    assert "a" in row and 10 not in row and 10 in Row(10) and "a" not in Row(10)


def test_a_row_of_names_makes_rows_with_these_names():
    person = Row("name", "age")
    assert person("Alice", 11).as_dict() == {"name": "Alice", "age": 11}
    with pytest.raises(ValueError, match="expected 2 values"):
        person("Alice", 11, 3)


def test_names_given_later():
    row = Row(1, 2)
    row.set_field_names(["x", "y"])
    assert (row.x, row["y"], row.get_fields_by_names(["y", "x"])) == (1, 2, [2, 1])


def test_repr_is_pyflinks():
    assert repr(Row(name="Alice", age=11)) == "Row(name='Alice', age=11)"
    assert str(Row(1, "a")) == "<Row(1, 'a')>"


def test_as_dict_inside_out():
    row = Row(key=1, inner=Row(a=2), many=[Row(a=3)], by_name={"k": Row(a=4)})
    assert row.as_dict()["inner"] == Row(a=2)
    assert row.as_dict(True) == {"key": 1, "inner": {"a": 2}, "many": [{"a": 3}], "by_name": {"k": {"a": 4}}}
    with pytest.raises(TypeError, match="without field names"):
        Row(1).as_dict()


def test_equality_looks_at_values_names_and_kind():
    assert Row(1, 2) == Row(1, 2) != Row(2, 1)
    assert Row(a=1) != Row(1) and Row(a=1) != Row(b=1)
    assert Row(1) != [1]
    assert not [1] == Row(1)  # noqa: SIM201, SIM300
    assert Row(1) != Row.of_kind(RowKind.DELETE, 1)
    assert hash(Row(a=1)) == hash(Row(a=1))
    assert Row(b=1, a=2) == Row(a=2, b=1) != Row(a=1, b=2)
    assert hash(Row(b=1, a=2)) == hash(Row(a=2, b=1))
    assert Row.factory(["a"])([1]) == Row(a=1)


@pytest.mark.parametrize(
    "row",
    [
        Row(1, "x"),
        Row(a=1, b=[2]),
        Row(b=1, a=2),
        Row.of_kind(RowKind.UPDATE_AFTER, c=1),
        Row.of_kind(RowKind.DELETE, 1),
        ROW.maker()((1, "x")),
    ],
)
def test_copies_and_pickles_are_equal(row):
    for same in (pickle.loads(pickle.dumps(row)), copy.copy(row), copy.deepcopy(row)):
        assert same == row and same is not row
        assert same.get_row_kind() is row.get_row_kind()
        assert (same._fields, repr(same), list(same)) == (row._fields, repr(row), list(row))
        assert UndeclaredForm().encode(same) == UndeclaredForm().encode(row)


def test_fields_win_over_methods_of_lists():
    row = Row(count=3, index=4)
    assert (row.count, row.index) == (3, 4)


def test_what_does_not_exist_is_an_error():
    row = Row(a=1)
    with pytest.raises(AttributeError):
        row.b  # noqa: B018
    with pytest.raises(KeyError, match=r"no field 'b'; its fields are \['a'\]"):
        row["b"]
    with pytest.raises(AttributeError, match=r"row\['a'\]"):
        row.a = 2
    with pytest.raises(ValueError, match="both args and kwargs"):
        Row(1, a=2)


def test_rows_of_a_factory_can_be_renamed_and_marked():
    row = Row.factory(["a", "b"])((1, 2))
    row.set_row_kind(RowKind.DELETE)
    row.set_field_names(["c", "d"])
    assert (row.c, row.get_row_kind()) == (1, RowKind.DELETE)
    assert Row.factory(None)((1, 2)) == Row(1, 2)


def test_a_factory_runs_no_python_code_per_row():
    make, calls = Row.factory(("a", "b")), []

    def record(frame, event, argument):
        # Other code may run too: the garbage collector has callbacks.
        if event == "call" and frame.f_globals.get("__name__") == Row.__module__:
            calls.append(frame.f_code.co_name)

    sys.setprofile(record)
    try:
        rows = list(map(make, zip(range(100), range(100), strict=True)))
    finally:
        sys.setprofile(None)
    assert rows[7].b == 7
    assert calls == []


def test_rows_of_positions_have_the_names_of_positions():
    row = ROW.maker()((1, "a"))
    assert (row.f0, row["f1"], row.as_dict(), str(row)) == (1, "a", {"f0": 1, "f1": "a"}, "Row(f0=1, f1='a')")
    assert row == Row(f1="a", f0=1) and row != Row(1, "a")
    row.set_field_names(["x", "y"])
    assert row == Row(x=1, y="a")


def test_the_kind_of_a_row_is_part_of_its_class():
    row = Row.of_kind(RowKind.UPDATE_BEFORE, b=1, a=2)
    assert (str(row.get_row_kind()), row.b, repr(row)) == ("-U", 1, "Row(b=1, a=2)")
    row.set_row_kind(RowKind.INSERT)
    assert type(row) is type(Row(b=1, a=2))
    assert list(map(str, RowKind)) == ["+I", "-U", "+U", "-D"]


def test_a_key_of_no_declared_type_is_what_it_was_before_rows_kept_the_order_of_keywords():
    """The bytes are those of rows whose keywords were sorted, and of rows of ROW, which had no names."""
    form = UndeclaredForm()
    sorted_row, unnamed = Row("a", "b")(2, 1), Row(2, 1)
    assert form.encode(Row(b=1, a=2)) == form.encode(sorted_row) == b"R\x92\x92\xa1a\xa1b" + b"\xc4" + _encoded(2, 1)
    assert form.hash(Row(b=1, a=2)) == form.hash(sorted_row) == form.hash(unnamed)
    of_positions = Types.ROW([Types.LONG(), Types.LONG()]).maker()((2, 1))
    assert form.encode(of_positions) == form.encode(unnamed) == b"R\x92\xc0\xc4" + _encoded(2, 1)
    # Names that were given are part of the key, in their order.
    assert form.encode(Row("b", "a")(1, 2)) != form.encode(sorted_row)


def _encoded(*values: int) -> bytes:
    encoded = UndeclaredForm().encode(values)[1:]
    return bytes([len(encoded)]) + encoded
