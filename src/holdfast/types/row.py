"""Rows: values by position, by name, and by attribute."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Any, SupportsIndex, cast


class RowKind(Enum):
    """What a row says about a changing table."""

    INSERT = 0
    UPDATE_BEFORE = 1
    UPDATE_AFTER = 2
    DELETE = 3


_get_item = list.__getitem__


class Row(list[Any]):
    """A row with values by position (``row[0]``) and, if it has names, by name (``row["a"]``, ``row.a``).

    ``Row(a=1, b=2)`` has names, sorted as in PyFlink; ``Row(1, 2)`` has none; ``Row("a", "b")(1, 2)`` takes the names
    from the first call. Values can be replaced by position or name, and attributes cannot be set. A row's kind is kept
    by pickled types alone: rows that reach another task as a declared type are INSERT.

    It is a list so that a million of them are made at the speed of lists. Rows with names are instances of a subclass
    made once per tuple of names, which gives every name a property: a field named ``count`` is the field, and not the
    method of lists.
    """

    __slots__ = ("_row_kind",)

    _fields: tuple[str, ...] | None = None
    _row_kind: RowKind

    def __new__(cls, *args: Any, **kwargs: Any) -> Row:
        return list.__new__(_class_for(tuple(sorted(kwargs))) if kwargs else cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError("Can not use both args and kwargs to create Row")
        super().__init__([kwargs[name] for name in sorted(kwargs)] if kwargs else args)

    @staticmethod
    def factory(names: Sequence[str] | None) -> Callable[[Iterable[Any]], Row]:
        """A callable that makes rows of these names (None: without names) from their values; fit for ``map``."""
        return _bulk_class_for(None if names is None else tuple(names))

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
        try:
            return self._row_kind
        except AttributeError:
            return RowKind.INSERT

    def set_row_kind(self, row_kind: RowKind) -> None:
        object.__setattr__(self, "_row_kind", row_kind)

    def set_field_names(self, field_names: Sequence[str]) -> None:
        object.__setattr__(self, "__class__", _class_for(tuple(field_names)))

    def get_fields_by_names(self, names: Sequence[str]) -> list[Any]:
        """The values of the fields of these names, in their order."""
        return [self[name] for name in names]

    def __call__(self, *args: Any) -> Row:
        if len(args) > len(self):
            raise ValueError(f"Can not create Row with fields {self}, expected {len(self)} values but got {args}")
        return _restore(tuple(self), args, self.get_row_kind())

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

    def _position(self, name: str) -> int:
        if self._fields is None or name not in self._fields:
            raise KeyError(f"Row has no field '{name}'; its fields are {list(self._fields or [])}")
        return self._fields.index(name)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Row)
            and self._fields == other._fields
            and self.get_row_kind() is other.get_row_kind()
            and list.__eq__(self, other)
        )

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:  # type: ignore[override]  # rows are keys, as in PyFlink
        return hash(tuple(self))

    def __repr__(self) -> str:
        if self._fields is None:
            return f"<Row({', '.join(map(repr, self))})>"
        return f"Row({', '.join(f'{n}={v!r}' for n, v in zip(self._fields, self, strict=False))})"

    __str__ = __repr__

    def __copy__(self) -> Row:
        return _restore(self._fields, tuple(self), self.get_row_kind())

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        return _restore, (self._fields, tuple(self), self.get_row_kind())


_classes: dict[tuple[str, ...], type[Row]] = {}
_bulk_classes: dict[tuple[str, ...] | None, type[Row]] = {}


def _class_for(names: tuple[str, ...]) -> type[Row]:
    found = _classes.get(names)
    if found is None:
        found = _classes[names] = _new_class(Row, names)
    return found


def _new_class(base: type[Row], names: tuple[str, ...] | None) -> type[Row]:
    namespace: dict[str, Any] = {"__slots__": (), "__module__": Row.__module__, "__doc__": None, "_fields": names}
    for position, name in enumerate(names or ()):
        if isinstance(name, str) and name.isidentifier() and not name.startswith("_"):
            namespace[name] = property(_getter(position))
    return cast("type[Row]", type("Row", (base,), namespace))


def _bulk_class_for(names: tuple[str, ...] | None) -> type[Row]:
    """The class whose constructor is list's own, which takes the values as one iterable."""
    found = _bulk_classes.get(names)
    if found is None:
        found = _new_class(_class_for(names) if names is not None else Row, names)
        found.__new__ = list.__new__  # type: ignore[method-assign]  # made by the list itself
        found.__init__ = list.__init__  # type: ignore[method-assign]  # made by the list itself
        _bulk_classes[names] = found
    return found


def _getter(position: int) -> Callable[[Row], Any]:
    def get(row: Row, _item: Callable[[Row, int], Any] = list.__getitem__) -> Any:
        return _item(row, position)

    return get


def _restore(names: Sequence[str] | None, values: Iterable[Any], row_kind: RowKind) -> Row:
    row = _bulk_class_for(None if names is None else tuple(names))(values)
    if row_kind is not RowKind.INSERT:
        row.set_row_kind(row_kind)
    return row


def _to_dict(value: Any) -> Any:
    if isinstance(value, Row):
        return value.as_dict(True)
    if isinstance(value, list):
        return [_to_dict(item) for item in value]
    if isinstance(value, dict):
        return {key: _to_dict(item) for key, item in value.items()}
    return value
