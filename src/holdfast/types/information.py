"""Type information: what a stream's rows, a key or a state's values are.

TypeInformation
├── BasicTypeInfo            one of BasicType
├── DecimalTypeInfo          decimals of fixed precision and scale
├── PickledBytesTypeInfo     any Python object, pickled
├── ElementsTypeInfo         Python lists
│   └── ListTypeInfo, PrimitiveArrayTypeInfo, BasicArrayTypeInfo, ObjectArrayTypeInfo
├── MapTypeInfo              Python dicts
└── FieldsTypeInfo           a fixed number of fields: columns of their own in Arrow
    ├── TupleTypeInfo, RowTypeInfo
    └── ClassTypeInfo        instances of a class (classes.py)
        └── DataclassTypeInfo, NamedTupleTypeInfo, StructTypeInfo

Type information is a value: equal when it describes the same type, hashable, picklable, and ``to_json`` gives a
text-only form that stays readable for as long as there are savepoints. Every field and element may be None.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from operator import attrgetter, itemgetter
from typing import Any, ClassVar

import pyarrow as pa

from holdfast.errors import ProgramError


class BasicType(Enum):
    """The types without parameters; the member's name is their stored name."""

    STRING = "STRING"
    BYTES = "BYTES"
    BOOLEAN = "BOOLEAN"
    BYTE = "BYTE"
    SHORT = "SHORT"
    INT = "INT"
    LONG = "LONG"
    FLOAT = "FLOAT"
    DOUBLE = "DOUBLE"
    CHAR = "CHAR"
    BIG_INT = "BIG_INT"
    BIG_DEC = "BIG_DEC"
    INSTANT = "INSTANT"
    SQL_DATE = "SQL_DATE"
    SQL_TIME = "SQL_TIME"
    SQL_TIMESTAMP = "SQL_TIMESTAMP"
    TIMESTAMP_LTZ = "TIMESTAMP_LTZ"


#: BIG_INT and BIG_DEC have no bound on their digits, so their Arrow form is their decimal text.
_ARROW: dict[BasicType, pa.DataType] = {
    BasicType.STRING: pa.string(),
    BasicType.BYTES: pa.binary(),
    BasicType.BOOLEAN: pa.bool_(),
    BasicType.BYTE: pa.int8(),
    BasicType.SHORT: pa.int16(),
    BasicType.INT: pa.int32(),
    BasicType.LONG: pa.int64(),
    BasicType.FLOAT: pa.float32(),
    BasicType.DOUBLE: pa.float64(),
    BasicType.CHAR: pa.string(),
    BasicType.BIG_INT: pa.string(),
    BasicType.BIG_DEC: pa.string(),
    BasicType.INSTANT: pa.timestamp("ns", "UTC"),
    BasicType.SQL_DATE: pa.date32(),
    BasicType.SQL_TIME: pa.time64("us"),
    BasicType.SQL_TIMESTAMP: pa.timestamp("us"),
    BasicType.TIMESTAMP_LTZ: pa.timestamp("us", "UTC"),
}


class TypeInformation(ABC):
    """The type of a row, a key or a value."""

    #: The discriminator of the JSON form.
    kind: ClassVar[str]

    @property
    @abstractmethod
    def immutable(self) -> bool:
        """True when no value of this type can be changed in place."""

    @abstractmethod
    def describe(self) -> str:
        """A stable text for people, such as ``TUPLE<LONG, STRING>``."""

    @abstractmethod
    def arrow_type(self) -> pa.DataType: ...

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """A form of dicts, lists and strings that ``from_json`` reads, now and in later versions."""

    @staticmethod
    def from_json(data: dict[str, Any]) -> TypeInformation:
        reader = _READERS.get(str(data.get("kind")))
        if reader is None:
            raise ProgramError(f"Unknown kind of type {data.get('kind')!r} in {data!r}; known are {sorted(_READERS)}")
        return reader(data)

    def __str__(self) -> str:
        return self.describe()


@dataclass(frozen=True, repr=False)
class BasicTypeInfo(TypeInformation):
    basic: BasicType
    kind: ClassVar[str] = "basic"

    @property
    def immutable(self) -> bool:
        return True

    def describe(self) -> str:
        return self.basic.name

    def arrow_type(self) -> pa.DataType:
        return _ARROW[self.basic]

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "name": self.basic.name}

    def __repr__(self) -> str:
        return self.describe()


@dataclass(frozen=True, repr=False)
class DecimalTypeInfo(TypeInformation):
    precision: int
    scale: int
    kind: ClassVar[str] = "decimal"

    def __post_init__(self) -> None:
        if not (1 <= self.precision <= 38 and 0 <= self.scale <= self.precision):
            raise ProgramError(
                f"DECIMAL({self.precision}, {self.scale}) does not exist: precision is 1 to 38, scale 0 to precision"
            )

    @property
    def immutable(self) -> bool:
        return True

    def describe(self) -> str:
        return f"DECIMAL({self.precision}, {self.scale})"

    def arrow_type(self) -> pa.DataType:
        return pa.decimal128(self.precision, self.scale)

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "precision": self.precision, "scale": self.scale}

    def __repr__(self) -> str:
        return self.describe()


@dataclass(frozen=True, repr=False)
class PickledBytesTypeInfo(TypeInformation):
    """Any Python object; the only type whose values are pickled."""

    kind: ClassVar[str] = "pickled"

    @property
    def immutable(self) -> bool:
        return False

    def describe(self) -> str:
        return "PICKLED_BYTE_ARRAY"

    def arrow_type(self) -> pa.DataType:
        return pa.binary()

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind}

    def __repr__(self) -> str:
        return self.describe()


@dataclass(frozen=True, repr=False)
class ElementsTypeInfo(TypeInformation):
    """A Python list of elements of one type."""

    element_type: TypeInformation
    label: ClassVar[str]

    def __post_init__(self) -> None:
        _check_type(self.element_type, self.label)

    @property
    def immutable(self) -> bool:
        return False

    def describe(self) -> str:
        return f"{self.label}<{self.element_type.describe()}>"

    def arrow_type(self) -> pa.DataType:
        return pa.list_(self.element_type.arrow_type())

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "element": self.element_type.to_json()}

    def __repr__(self) -> str:
        return self.describe()


class ListTypeInfo(ElementsTypeInfo):
    kind = "list"
    label = "LIST"


class PrimitiveArrayTypeInfo(ElementsTypeInfo):
    kind = "primitive_array"
    label = "PRIMITIVE_ARRAY"


class BasicArrayTypeInfo(ElementsTypeInfo):
    kind = "basic_array"
    label = "BASIC_ARRAY"


class ObjectArrayTypeInfo(ElementsTypeInfo):
    kind = "object_array"
    label = "OBJECT_ARRAY"


@dataclass(frozen=True, repr=False)
class MapTypeInfo(TypeInformation):
    key_type: TypeInformation
    value_type: TypeInformation
    kind: ClassVar[str] = "map"

    def __post_init__(self) -> None:
        _check_type(self.key_type, "MAP")
        _check_type(self.value_type, "MAP")

    @property
    def immutable(self) -> bool:
        return False

    def describe(self) -> str:
        return f"MAP<{self.key_type.describe()}, {self.value_type.describe()}>"

    def arrow_type(self) -> pa.DataType:
        return pa.map_(self.key_type.arrow_type(), self.value_type.arrow_type())

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "key": self.key_type.to_json(), "value": self.value_type.to_json()}

    def __repr__(self) -> str:
        return self.describe()


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
            _check_type(type_info, self.label)

    def get_field_types(self) -> list[TypeInformation]:
        return list(self.field_types)

    def get_field_names(self) -> list[str]:
        return list(self.field_names)

    def getter(self, field_or_place: str | int) -> Callable[[Any], Any]:
        """Gives a field of a row, by its name or its position."""
        names = self.field_names
        place = field_or_place if isinstance(field_or_place, int) else names.index(field_or_place)
        return itemgetter(place) if isinstance(self, (TupleTypeInfo, RowTypeInfo)) else attrgetter(names[place])

    @property
    def immutable(self) -> bool:
        return False

    def describe(self) -> str:
        fields = zip(self.field_names, self.field_types, strict=True)
        return f"{self.label}<{', '.join(f'{name}: {type_info.describe()}' for name, type_info in fields)}>"

    def arrow_type(self) -> pa.DataType:
        return pa.struct([(n, t.arrow_type()) for n, t in zip(self.field_names, self.field_types, strict=True)])

    def to_json(self) -> dict[str, Any]:
        fields = zip(self.field_names, self.field_types, strict=True)
        return {"kind": self.kind, "fields": [[name, type_info.to_json()] for name, type_info in fields]}

    def __repr__(self) -> str:
        return self.describe()


class TupleTypeInfo(FieldsTypeInfo):
    """``field_names`` are for tuples whose fields are told apart by name over a restore."""

    kind = "tuple"
    label = "TUPLE"

    def __init__(self, field_types: Sequence[TypeInformation], field_names: Sequence[str] | None = None) -> None:
        names = positional_names(len(field_types)) if field_names is None else tuple(field_names)
        super().__init__(tuple(field_types), names)

    @property
    def named(self) -> bool:
        return self.field_names != positional_names(len(self.field_types))

    def default_of(self, name: str) -> Callable[[], Any] | None:
        """A field that a stored tuple does not have is not made up."""
        return None

    @property
    def immutable(self) -> bool:
        return all(type_info.immutable for type_info in self.field_types)

    def describe(self) -> str:
        if self.named:
            return super().describe()
        return f"TUPLE<{', '.join(type_info.describe() for type_info in self.field_types)}>"


@dataclass(frozen=True, repr=False)
class RowTypeInfo(FieldsTypeInfo):
    """``named`` is False for ``Types.ROW``, whose rows have positions only.

    ``defaults`` and ``aliases`` say how stored rows without a field follow this type: with its default, or with the
    field that had one of its other names. They are no part of what the type is. Without them a new field is None.
    """

    named: bool = True
    defaults: Mapping[str, Any] | None = field(default=None, compare=False)
    aliases: Mapping[str, tuple[str, ...]] | None = field(default=None, compare=False)
    kind: ClassVar[str] = "row"
    label: ClassVar[str] = "ROW"

    def describe(self) -> str:
        if self.named:
            return super().describe()
        return f"ROW<{', '.join(type_info.describe() for type_info in self.field_types)}>"

    def default_of(self, name: str) -> Callable[[], Any] | None:
        """Makes the value of a field that a stored row does not have; None where there must be one."""
        if self.defaults is None:
            return lambda: None
        defaults = self.defaults
        return (lambda: defaults[name]) if name in defaults else None

    def to_json(self) -> dict[str, Any]:
        return {**super().to_json(), "named": self.named}


def positional_names(count: int) -> tuple[str, ...]:
    return tuple(f"f{position}" for position in range(count))


def _check_type(value: object, label: str) -> None:
    if not isinstance(value, TypeInformation):
        raise ProgramError(
            f"{label} was given {value!r} as a type of its content; expected TypeInformation such as Types.LONG()"
        )


def register_kind(kind: str, reader: Callable[[dict[str, Any]], TypeInformation]) -> None:
    """Let ``from_json`` read another kind of type."""
    _READERS[kind] = reader


def fields_from_json(data: dict[str, Any]) -> tuple[tuple[TypeInformation, ...], tuple[str, ...]]:
    """Types and names of the fields in a stored form."""
    types = tuple(TypeInformation.from_json(stored) for _, stored in data["fields"])
    return types, tuple(name for name, _ in data["fields"])


_READERS: dict[str, Callable[[dict[str, Any]], TypeInformation]] = {
    "basic": lambda data: BasicTypeInfo(BasicType[data["name"]]),
    "decimal": lambda data: DecimalTypeInfo(data["precision"], data["scale"]),
    "pickled": lambda data: PickledBytesTypeInfo(),
    "list": lambda data: ListTypeInfo(TypeInformation.from_json(data["element"])),
    "primitive_array": lambda data: PrimitiveArrayTypeInfo(TypeInformation.from_json(data["element"])),
    "basic_array": lambda data: BasicArrayTypeInfo(TypeInformation.from_json(data["element"])),
    "object_array": lambda data: ObjectArrayTypeInfo(TypeInformation.from_json(data["element"])),
    "map": lambda data: MapTypeInfo(TypeInformation.from_json(data["key"]), TypeInformation.from_json(data["value"])),
    "tuple": lambda data: TupleTypeInfo(*fields_from_json(data)),
    "row": lambda data: RowTypeInfo(*fields_from_json(data), named=data["named"]),
}
