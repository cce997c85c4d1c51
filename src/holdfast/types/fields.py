"""Types of a fixed number of fields, which are columns of their own in Arrow: tuples and rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, ClassVar

import pyarrow as pa

from holdfast.errors import ProgramError
from holdfast.types import (
    arrow_read,
    arrow_write,
    column_checks,
    field_changes,
    storage_forms,
    table_columns,
    text_forms,
)
from holdfast.types.arrow_read import ColumnReader, MakeRecords
from holdfast.types.arrow_write import ColumnWriter, SplitRecords
from holdfast.types.column_checks import ColumnCheck
from holdfast.types.contract import TypeInformation
from holdfast.types.key_composites import FieldsForm
from holdfast.types.key_forms import KeyForm
from holdfast.types.part_types import check_type, fields_from_json
from holdfast.types.registry import register_type
from holdfast.types.row import NamesOf, Row
from holdfast.types.storage_scalars import Form
from holdfast.types.table_columns import Column
from holdfast.types.table_scalars import composite_key
from holdfast.types.text_forms import Show
from holdfast.types.type_changes import Change, KeyChange, keeps_hash, loses_nothing

#: Makes the value of a field that a stored value does not have.
Default = Callable[[], Any]


@dataclass(frozen=True, repr=False)
class FieldsTypeInfo(TypeInformation):
    """A fixed number of fields. ``field_names`` name the columns of a batch; in a tuple they are f0, f1, ..."""

    field_types: tuple[TypeInformation, ...]
    field_names: tuple[str, ...]
    label: ClassVar[str]

    def __post_init__(self) -> None:
        if not self.field_types:
            raise ProgramError(f"A {self.label} needs at least one field")
        if len(self.field_names) != len(self.field_types):
            raise ProgramError(
                f"A {self.label} has {len(self.field_names)} field names {list(self.field_names)} "
                f"for {len(self.field_types)} field types; give one name per type"
            )
        if len(set(self.field_names)) != len(self.field_names):
            raise ProgramError(f"A {self.label} has a field name twice: {list(self.field_names)}")
        for type_info in self.field_types:
            check_type(type_info, self.label)

    # -- what each class of them says

    @property
    @abstractmethod
    def has_names(self) -> bool:
        """Whether fields are told apart by name over a restore."""

    @abstractmethod
    def maker(self) -> Callable[[Sequence[Any]], Any]:
        """Makes a value from those of its fields, in their order."""

    @abstractmethod
    def split_records(self) -> SplitRecords:
        """Takes values apart."""

    @abstractmethod
    def records_check(self, fields: Sequence[ColumnCheck]) -> ColumnCheck:
        """Whether values, none of which may be None, need no conversion; of the checks of its fields."""

    @abstractmethod
    def fields_form(self, fields: Sequence[Form]) -> Form:
        """The stored form, of the forms of its fields."""

    @abstractmethod
    def default_of(self, name: str) -> Default | None:
        """Makes the value of a field that a stored value does not have; None where there must be one."""

    def aliases_of(self, name: str) -> Sequence[str]:
        """Other names under which a field may be stored."""
        return ()

    def make_records(self) -> MakeRecords:
        make = self.maker()
        return lambda columns: list(map(make, zip(*columns, strict=True)))

    def getter(self, field_or_place: str | int) -> Callable[[Any], Any]:
        """Gives a field of a row, by its name or its position."""
        return itemgetter(self._place(field_or_place))

    def follows_by_name(self, old: TypeInformation) -> bool:
        """Whether both have names, so that fields of ``old`` are found by theirs."""
        return type(old) is type(self) and self.has_names and old.has_names

    # -- what holds for all of them

    def _place(self, field_or_place: str | int) -> int:
        return field_or_place if isinstance(field_or_place, int) else self.field_names.index(field_or_place)

    def get_field_types(self) -> list[TypeInformation]:
        return list(self.field_types)

    def get_field_names(self) -> list[str]:
        return list(self.field_names)

    @property
    def immutable(self) -> bool:
        return False

    def describe(self) -> str:
        fields = zip(self.field_names, self.field_types, strict=True)
        return f"{self.label}<{', '.join(f'{name}: {type_info.describe()}' for name, type_info in fields)}>"

    def to_json(self) -> dict[str, Any]:
        fields = zip(self.field_names, self.field_types, strict=True)
        return {"kind": self.kind, "fields": [[name, type_info.to_json()] for name, type_info in fields]}

    @property
    def parts(self) -> tuple[TypeInformation, ...]:
        return self.field_types

    def bare(self) -> TypeInformation:
        return RowTypeInfo(tuple(one.bare() for one in self.field_types), self.field_names, self.has_names)

    def arrow_type(self) -> pa.DataType:
        return pa.struct([(n, t.arrow_type()) for n, t in zip(self.field_names, self.field_types, strict=True)])

    def column_reader(self) -> ColumnReader:
        return arrow_read.struct_reader([one.column_reader() for one in self.field_types], self.make_records())

    def column_writer(self) -> ColumnWriter:
        writers = [one.column_writer() for one in self.field_types]
        return arrow_write.struct_writer(self.split_records(), writers, self.arrow_type())

    def column_check(self) -> ColumnCheck:
        return column_checks.or_none(self.records_check([one.column_check() for one in self.field_types]))

    def stored_form(self) -> Form:
        return self.fields_form([one.stored_form() for one in self.field_types])

    def stored_column(self) -> Column:
        return table_columns.struct(self.field_names, [one.stored_column() for one in self.field_types])

    def key_form(self) -> KeyForm:
        fields = [one.key_form() for one in self.field_types]
        return FieldsForm(self.describe(), self.field_names, fields, self.maker())

    def key_column(self) -> Column:
        return composite_key(table_columns.struct(self.field_names, [one.key_column() for one in self.field_types]))

    def change_from(self, old: TypeInformation) -> Change | None:
        if not isinstance(old, FieldsTypeInfo):
            return None
        if self.follows_by_name(old):
            return field_changes.change_named(old, self)
        by_position = type(old) is type(self) and not self.has_names and not old.has_names
        return field_changes.change_positions(old, self) if by_position else None

    def loses_nothing_of(self, old: TypeInformation) -> bool:
        if not isinstance(old, FieldsTypeInfo):
            return True
        if self.follows_by_name(old):
            return field_changes.named_lose_nothing(old, self)
        return all(map(loses_nothing, old.field_types, self.field_types))

    def key_change_from(self, old: TypeInformation) -> KeyChange:
        assert isinstance(old, FieldsTypeInfo), "the types are compatible"
        by_name = self.follows_by_name(old)
        change = field_changes.change_named_key if by_name else field_changes.change_key_positions
        return change(old, self)

    def keeps_hash_of(self, old: TypeInformation) -> bool:
        if not isinstance(old, FieldsTypeInfo):
            return False
        if self.follows_by_name(old):
            return field_changes.named_keep_hash(old, self)
        return all(map(keeps_hash, old.field_types, self.field_types))


@register_type
class TupleTypeInfo(FieldsTypeInfo):
    """``field_names`` are for tuples whose fields are told apart by name over a restore."""

    kind = "tuple"
    label = "TUPLE"

    def __init__(self, field_types: Sequence[TypeInformation], field_names: Sequence[str] | None = None) -> None:
        names = positional_names(len(field_types)) if field_names is None else tuple(field_names)
        super().__init__(tuple(field_types), names)

    @classmethod
    def read_json(cls, data: dict[str, Any]) -> TupleTypeInfo:
        return cls(*fields_from_json(data))

    @property
    def has_names(self) -> bool:
        return self.field_names != positional_names(len(self.field_types))

    @property
    def immutable(self) -> bool:
        return all(type_info.immutable for type_info in self.field_types)

    @property
    def cell_class(self) -> type | None:
        fields = [field.cell_class for field in self.field_types]
        # A bytes field takes a bytearray too, which can be changed inside of its tuple.
        return None if None in fields or bytes in fields else tuple

    def describe(self) -> str:
        if self.has_names:
            return super().describe()
        return f"TUPLE<{', '.join(type_info.describe() for type_info in self.field_types)}>"

    def __str__(self) -> str:
        return f"TupleTypeInfo({', '.join(map(str, self.field_types))})"

    def bare(self) -> TypeInformation:
        return TupleTypeInfo([one.bare() for one in self.field_types], self.field_names)

    def default_of(self, name: str) -> Default | None:
        """A field that a stored tuple does not have is not made up."""
        return None

    def maker(self) -> Callable[[Sequence[Any]], Any]:
        return tuple

    def make_records(self) -> MakeRecords:
        return lambda columns: list(zip(*columns, strict=True))

    def split_records(self) -> SplitRecords:
        return arrow_write.columns_from_records(len(self.field_types), None)

    def records_check(self, fields: Sequence[ColumnCheck]) -> ColumnCheck:
        return column_checks.tuples(tuple, fields)

    def text_form(self) -> Show:
        return text_forms.tuples([one.text_form() for one in self.field_types])

    def fields_form(self, fields: Sequence[Form]) -> Form:
        return storage_forms.tuple_form(self, fields)


@register_type
@dataclass(frozen=True, repr=False)
class RowTypeInfo(FieldsTypeInfo):
    """``named`` is False for ``Types.ROW``, whose fields are told apart by their positions: f0, f1, ...

    ``defaults`` and ``aliases`` say how stored rows without a field follow this type: with its default, or with the
    field that had one of its other names. They are no part of what the type is. Without them a new field is None.
    """

    named: bool = True
    defaults: Mapping[str, Any] | None = field(default=None, compare=False)
    aliases: Mapping[str, tuple[str, ...]] | None = field(default=None, compare=False)
    kind: ClassVar[str] = "row"
    label: ClassVar[str] = "ROW"

    def to_json(self) -> dict[str, Any]:
        return {**super().to_json(), "named": self.named}

    @classmethod
    def read_json(cls, data: dict[str, Any]) -> RowTypeInfo:
        return cls(*fields_from_json(data), named=data["named"])

    @property
    def has_names(self) -> bool:
        return self.named

    def describe(self) -> str:
        if self.named:
            return super().describe()
        return f"ROW<{', '.join(type_info.describe() for type_info in self.field_types)}>"

    def __str__(self) -> str:
        named = zip(self.field_names, self.field_types, strict=True)
        fields = [f"{name}: {one}" for name, one in named] if self.named else map(str, self.field_types)
        return f"RowTypeInfo({', '.join(fields)})"

    def get_field_index(self, field_name: str) -> int:
        """ValueError where there is no such field."""
        return self.field_names.index(field_name)

    def default_of(self, name: str) -> Default | None:
        if self.defaults is None:
            return lambda: None
        defaults = self.defaults
        return (lambda: defaults[name]) if name in defaults else None

    def aliases_of(self, name: str) -> Sequence[str]:
        return (self.aliases or {}).get(name, ())

    def maker(self) -> Callable[[Sequence[Any]], Any]:
        return Row.factory(self.field_names, NamesOf.GIVEN if self.named else NamesOf.POSITIONS)

    def split_records(self) -> SplitRecords:
        return arrow_write.columns_from_records(len(self.field_types), self.field_names)

    def records_check(self, fields: Sequence[ColumnCheck]) -> ColumnCheck:
        return column_checks.rows(self.field_names, fields)

    def text_form(self) -> Show:
        return text_forms.rows([one.text_form() for one in self.field_types])

    def fields_form(self, fields: Sequence[Form]) -> Form:
        return storage_forms.row_form(self, fields, self.field_names, self.named, self.maker())


def positional_names(count: int) -> tuple[str, ...]:
    return tuple(f"f{position}" for position in range(count))
