"""Types of lists and maps, which hold any number of values of one type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from holdfast.types import arrow_read, arrow_write, column_checks, storage_forms, table_columns, text_forms
from holdfast.types.arrow_read import ColumnReader
from holdfast.types.arrow_write import ColumnWriter
from holdfast.types.column_checks import ColumnCheck
from holdfast.types.contract import TypeInformation
from holdfast.types.key_composites import ElementsForm
from holdfast.types.key_forms import KeyForm
from holdfast.types.part_types import check_type
from holdfast.types.registry import register_type
from holdfast.types.storage_scalars import Form
from holdfast.types.table_columns import Column
from holdfast.types.table_scalars import composite_key
from holdfast.types.text_forms import Show
from holdfast.types.type_changes import Change, KeyChange, change_between, keeps_hash, loses_nothing, optional


@dataclass(frozen=True, repr=False)
class ElementsTypeInfo(TypeInformation):
    """A Python list of elements of one type."""

    element_type: TypeInformation
    label: ClassVar[str]

    def __post_init__(self) -> None:
        check_type(self.element_type, self.label)

    @property
    def immutable(self) -> bool:
        return False

    def describe(self) -> str:
        return f"{self.label}<{self.element_type.describe()}>"

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "element": self.element_type.to_json()}

    @classmethod
    def read_json(cls, data: dict[str, Any]) -> ElementsTypeInfo:
        return cls(TypeInformation.from_json(data["element"]))

    @property
    def parts(self) -> tuple[TypeInformation, ...]:
        return (self.element_type,)

    def bare(self) -> TypeInformation:
        return type(self)(self.element_type.bare())

    def arrow_type(self) -> pa.DataType:
        return pa.list_(self.element_type.arrow_type())

    def column_reader(self) -> ColumnReader:
        return arrow_read.list_reader(self.element_type.column_reader())

    def column_writer(self) -> ColumnWriter:
        return arrow_write.list_writer(self.element_type.column_writer(), self.arrow_type())

    def column_check(self) -> ColumnCheck:
        return column_checks.elements(self.element_type.column_check())

    def text_form(self) -> Show:
        return text_forms.elements(self.element_type.text_form())

    def stored_form(self) -> Form:
        return storage_forms.elements_form(self, self.element_type.stored_form())

    def stored_column(self) -> Column:
        return table_columns.elements(self.element_type.stored_column())

    def key_form(self) -> KeyForm:
        return ElementsForm(self.describe(), self.element_type.key_form())

    def key_column(self) -> Column:
        return composite_key(table_columns.elements(self.element_type.key_column()))

    def change_from(self, old: TypeInformation) -> Change | None:
        if not isinstance(old, ElementsTypeInfo) or type(old) is not type(self):
            return None
        change = change_between(old.element_type, self.element_type)
        return None if change is None else lambda stored: [optional(change, part) for part in stored]

    def loses_nothing_of(self, old: TypeInformation) -> bool:
        return not isinstance(old, ElementsTypeInfo) or loses_nothing(old.element_type, self.element_type)

    def key_change_from(self, old: TypeInformation) -> KeyChange:
        assert isinstance(old, ElementsTypeInfo), "the types are compatible"
        change = self.element_type.key_change_from(old.element_type)
        return lambda key: tuple([optional(change, part) for part in key])

    def keeps_hash_of(self, old: TypeInformation) -> bool:
        return isinstance(old, ElementsTypeInfo) and keeps_hash(old.element_type, self.element_type)

    @property
    def elem_type(self) -> TypeInformation:
        return self.element_type

    def __str__(self) -> str:
        return f"{type(self).__name__}<{self.element_type}>"


@register_type
class ListTypeInfo(ElementsTypeInfo):
    kind = "list"
    label = "LIST"


@register_type
class PrimitiveArrayTypeInfo(ElementsTypeInfo):
    kind = "primitive_array"
    label = "PRIMITIVE_ARRAY"


@register_type
class BasicArrayTypeInfo(ElementsTypeInfo):
    kind = "basic_array"
    label = "BASIC_ARRAY"


@register_type
class ObjectArrayTypeInfo(ElementsTypeInfo):
    kind = "object_array"
    label = "OBJECT_ARRAY"


@register_type
@dataclass(frozen=True, repr=False)
class MapTypeInfo(TypeInformation):
    """A Python dict. It is no key."""

    key_type: TypeInformation
    value_type: TypeInformation
    kind: ClassVar[str] = "map"

    def __post_init__(self) -> None:
        check_type(self.key_type, "MAP")
        check_type(self.value_type, "MAP")

    @property
    def immutable(self) -> bool:
        return False

    def describe(self) -> str:
        return f"MAP<{self.key_type.describe()}, {self.value_type.describe()}>"

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "key": self.key_type.to_json(), "value": self.value_type.to_json()}

    @classmethod
    def read_json(cls, data: dict[str, Any]) -> MapTypeInfo:
        return cls(TypeInformation.from_json(data["key"]), TypeInformation.from_json(data["value"]))

    @property
    def parts(self) -> tuple[TypeInformation, ...]:
        return (self.key_type, self.value_type)

    def bare(self) -> TypeInformation:
        return MapTypeInfo(self.key_type.bare(), self.value_type.bare())

    def arrow_type(self) -> pa.DataType:
        return pa.map_(self.key_type.arrow_type(), self.value_type.arrow_type())

    def column_reader(self) -> ColumnReader:
        return arrow_read.map_reader(self.key_type.column_reader(), self.value_type.column_reader())

    def column_writer(self) -> ColumnWriter:
        return arrow_write.map_writer(self.key_type.column_writer(), self.value_type.column_writer(), self.arrow_type())

    def column_check(self) -> ColumnCheck:
        return column_checks.mappings(self.key_type.column_check(), self.value_type.column_check())

    def text_form(self) -> Show:
        return text_forms.mapping(self.key_type.text_form(), self.value_type.text_form())

    def stored_form(self) -> Form:
        return storage_forms.map_form(self, self.key_type.stored_form(), self.value_type.stored_form())

    def stored_column(self) -> Column:
        pairs = table_columns.mapping(self.key_type.stored_column(), self.value_type.stored_column())
        if self.key_type.stored_form().plain is None:
            return pairs
        return pairs.mapped(lambda maps: [one.items() for one in maps], lambda found: list(map(dict, found)))

    def change_from(self, old: TypeInformation) -> Change | None:
        if not isinstance(old, MapTypeInfo):
            return None
        key, value = change_between(old.key_type, self.key_type), change_between(old.value_type, self.value_type)
        if key is None or value is None or not loses_nothing(old.key_type, self.key_type):
            return None

        def change(stored: Any) -> Any:
            if isinstance(stored, dict):
                return {key(name): optional(value, part) for name, part in stored.items()}
            return [(key(name), optional(value, part)) for name, part in stored]

        return change

    def loses_nothing_of(self, old: TypeInformation) -> bool:
        return not isinstance(old, MapTypeInfo) or loses_nothing(old.value_type, self.value_type)

    def __str__(self) -> str:
        return f"{type(self).__name__}<{self.key_type}, {self.value_type}>"
