"""Rows: values by position, by name, and by attribute."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Any, ClassVar, NamedTuple, SupportsIndex, cast

from holdfast.coverage.answers import SaysWhatToUse


class RowKind(SaysWhatToUse, Enum):
    """What a row says about a changing table."""

    INSERT = 0
    UPDATE_BEFORE = 1
    UPDATE_AFTER = 2
    DELETE = 3

    def __str__(self) -> str:
        return _SHORT_KINDS[self.value]


_SHORT_KINDS = ("+I", "-U", "+U", "-D")


class NamesOf(Enum):
    """Where the names of a row come from: what they mean in a key whose type nobody declared."""

    #: They are part of the key, as is their order.
    GIVEN = "given"
    #: They are part of the key, and their order is not.
    KEYWORDS = "keywords"
    #: They say no more than the positions, and are no part of the key.
    POSITIONS = "positions"


_get_item = list.__getitem__


class MissingFieldError(ValueError, KeyError):
    """A row has no field of a name: a ValueError, as in PyFlink, and what Python raises where a key is missing."""


class Row(list[Any]):
    """A row with values by position (``row[0]``) and, if it has names, by name (``row["a"]``, ``row.a``).

    ``Row(b=1, a=2)`` has names, in the order in which they are given; ``Row(1, 2)`` has none; ``Row("a", "b")(1, 2)``
    takes the names from the first call. Values can be replaced by position or name, and attributes cannot be set. Rows
    with names are equal whatever the order of their fields. States of a declared type do not keep a row's kind.

    It is a list so that a million of them are made at the speed of lists. Names and kind belong to its class, a
    subclass made once for each of them, which gives every name a property: a field named ``count`` is the field, and
    not the method of lists. So the classes of many rows say at once whether all of them have the same names and kind.
    """

    __slots__ = ()

    _fields: ClassVar[tuple[str, ...] | None] = None
    _row_kind: ClassVar[RowKind] = RowKind.INSERT
    _names_of: ClassVar[NamesOf] = NamesOf.GIVEN
    #: The positions of the fields in the order of their names; None where that is their own order.
    _sorted_positions: ClassVar[tuple[int, ...] | None] = None

    def __new__(cls, *args: Any, **kwargs: Any) -> Row:
        return list.__new__(_class_of(_Shape(tuple(kwargs), names_of=NamesOf.KEYWORDS)) if kwargs else cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError("Can not use both args and kwargs to create Row")
        super().__init__(kwargs.values() if kwargs else args)

    @staticmethod
    def factory(names: Sequence[str] | None, names_of: NamesOf = NamesOf.GIVEN) -> Callable[[Iterable[Any]], Row]:
        """A callable that makes rows of these names (None: without names) from their values; fit for ``map``."""
        return _class_of(_Shape(None if names is None else tuple(names), names_of=names_of, bulk=True))

    @staticmethod
    def of_kind(row_kind: RowKind, *args: Any, **kwargs: Any) -> Row:
        row = Row(*args, **kwargs)
        row.set_row_kind(row_kind)
        return row

    def as_dict(self, recursive: bool = False) -> dict[str, Any]:
        """Values by name; ``recursive`` also turns rows inside values, lists and dicts into dicts."""
        if self._fields is None:
            raise TypeError("Cannot convert a Row without field names into a dict; call set_field_names() first")
        values = [_to_dict(value) for value in self] if recursive else self
        return dict(zip(self._fields, values, strict=False))

    def get_row_kind(self) -> RowKind:
        return self._row_kind

    def set_row_kind(self, row_kind: RowKind) -> None:
        object.__setattr__(self, "__class__", _class_of(_shape_of(type(self))._replace(row_kind=row_kind)))

    def set_field_names(self, field_names: Sequence[str]) -> None:
        object.__setattr__(self, "__class__", _class_of(_Shape(tuple(field_names), self._row_kind)))

    def get_fields_by_names(self, names: Sequence[str]) -> list[Any]:
        """The values of the fields of these names, in their order; all values of a row without names."""
        return list(self) if self._fields is None else [self[name] for name in names]

    def __call__(self, *args: Any) -> Row:
        if len(args) > len(self):
            raise ValueError(f"Can not create Row with fields {self}, expected {len(self)} values but got {args}")
        return _restore(tuple(self), args, self._row_kind)

    def __getitem__(self, item: Any) -> Any:
        # Positions are the usual case, and called per row: names are looked for only when the list refuses them.
        try:
            return _get_item(self, item)
        except TypeError:
            if not isinstance(item, str):
                raise
            return _get_item(self, self._position(item))

    def __setitem__(self, item: Any, value: Any) -> None:
        list.__setitem__(self, self._position(item) if isinstance(item, str) else item, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"Row attributes cannot be set; write row[{name!r}] = ...")

    def __contains__(self, item: object) -> bool:
        """Whether it has a field of this name; of a row without names, whether it has this value."""
        return list.__contains__(self, item) if self._fields is None else item in self._fields

    def _position(self, name: str) -> int:
        if self._fields is None or name not in self._fields:
            raise MissingFieldError(f"Row has no field '{name}'; its fields are {list(self._fields or [])}")
        return self._fields.index(name)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Row) or self._row_kind is not other._row_kind:
            return False
        if self._fields == other._fields:
            return list.__eq__(self, other)
        if self._fields is None or other._fields is None or sorted(self._fields) != sorted(other._fields):
            return False
        return _by_name(self) == _by_name(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:  # type: ignore[override]  # rows are keys, as in PyFlink
        return hash(_by_name(self))

    def __repr__(self) -> str:
        if self._fields is None:
            return f"<Row({', '.join(map(repr, self))})>"
        return f"Row({', '.join(f'{n}={v!r}' for n, v in zip(self._fields, self, strict=False))})"

    __str__ = __repr__

    def __copy__(self) -> Row:
        make, arguments = self.__reduce_ex__(2)
        copied: Row = make(*arguments)
        return copied

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        parts = self._fields, tuple(self), self._row_kind
        plain = self._names_of is NamesOf.GIVEN or (
            self._names_of is NamesOf.KEYWORDS and self._sorted_positions is None
        )
        return _restore, parts if plain else (*parts, self._names_of)


class _Shape(NamedTuple):
    """What rows of one class have in common."""

    names: tuple[str, ...] | None = None
    row_kind: RowKind = RowKind.INSERT
    names_of: NamesOf = NamesOf.GIVEN
    #: Whether the class is called with one iterable of values, as a list is, and not with the values.
    bulk: bool = False


_classes: dict[_Shape, type[Row]] = {_Shape(): Row}


def _class_of(shape: _Shape) -> type[Row]:
    found = _classes.get(shape)
    if found is None:
        found = _classes[shape] = _new_class(shape)
    return found


def _new_class(shape: _Shape) -> type[Row]:
    namespace: dict[str, Any] = {
        "__slots__": (),
        "__module__": Row.__module__,
        "__doc__": None,
        "_fields": shape.names,
        "_row_kind": shape.row_kind,
        "_names_of": shape.names_of,
        "_sorted_positions": _order(shape.names),
    }
    for position, name in enumerate(shape.names or ()):
        if isinstance(name, str) and name.isidentifier() and not name.startswith("_"):
            namespace[name] = property(_getter(position))
    if shape.bulk:
        # Made by the list itself.
        namespace |= {"__new__": list.__new__, "__init__": list.__init__}
    return cast("type[Row]", type("Row", (Row,), namespace))


def _shape_of(cls: type[Row]) -> _Shape:
    return _Shape(cls._fields, cls._row_kind, cls._names_of)


def _order(names: tuple[str, ...] | None) -> tuple[int, ...] | None:
    """The positions of names in their sorted order; None where they are sorted."""
    positions = sorted(range(len(names or ())), key=(names or ()).__getitem__)
    return None if positions == sorted(positions) else tuple(positions)


def _by_name(row: Row) -> tuple[Any, ...]:
    """The values of a row in the order of their names."""
    order = row._sorted_positions
    return tuple(row) if order is None else tuple([_get_item(row, position) for position in order])


def given_names(row: Row) -> tuple[str, ...] | None:
    """The names that a row was given; None where it has none, or they say no more than the positions."""
    return None if row._names_of is NamesOf.POSITIONS else row._fields


def key_parts(row: Row) -> tuple[tuple[str, ...] | None, Sequence[Any]]:
    """Names and values of a row that is a key of no declared type."""
    if row._names_of is NamesOf.KEYWORDS:
        return tuple(sorted(row._fields or ())), _by_name(row)
    return given_names(row), row


def _getter(position: int) -> Callable[[Row], Any]:
    def get(row: Row, _item: Callable[[Row, int], Any] = list.__getitem__) -> Any:
        return _item(row, position)

    return get


def _restore(
    names: Sequence[str] | None, values: Iterable[Any], row_kind: RowKind, names_of: NamesOf = NamesOf.GIVEN
) -> Row:
    return _class_of(_Shape(None if names is None else tuple(names), row_kind, names_of, bulk=True))(values)


def _to_dict(value: Any) -> Any:
    if isinstance(value, Row):
        return value.as_dict(True)
    if isinstance(value, list):
        return [_to_dict(item) for item in value]
    if isinstance(value, dict):
        return {key: _to_dict(item) for key, item in value.items()}
    return value
