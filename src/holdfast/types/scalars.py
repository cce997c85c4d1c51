"""Types of single values: the basic ones, decimals of fixed precision, and any Python object."""

from __future__ import annotations

import decimal
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from holdfast.errors import ProgramError
from holdfast.types import arrow_read, column_checks, pickling, table_scalars
from holdfast.types.arrow_read import ColumnReader
from holdfast.types.arrow_write import ColumnWriter, checked_writer
from holdfast.types.basic_types import DESCRIPTIONS, BasicType, Description
from holdfast.types.column_checks import ColumnCheck
from holdfast.types.contract import TypeInformation
from holdfast.types.key_forms import DecimalForm, KeyForm
from holdfast.types.key_undeclared import UndeclaredForm
from holdfast.types.registry import AvroReader, DdlWord, FromJson, Names, register_type
from holdfast.types.storage_forms import pickled_form
from holdfast.types.storage_scalars import Form, decimal_form
from holdfast.types.table_columns import Column, plain
from holdfast.types.text_forms import Show
from holdfast.types.type_changes import Change, same
from holdfast.types.xxhash64 import MAX_LONG_DIGITS


def _always(made: TypeInformation) -> Any:
    return lambda *sizes: made


def _reading(made: TypeInformation, read: FromJson) -> AvroReader:
    return lambda schema, plain_read: (made, read)


#: What PyFlink writes for them; a type that it does not have is written as in messages.
_TEXTS = {
    **{one: one.name.capitalize() for one in BasicType if "_" not in one.name},
    BasicType.INT: "Integer",
    BasicType.BYTES: "PrimitiveArrayTypeInfo<Byte>",
    BasicType.BIG_INT: "BigInteger",
    BasicType.BIG_DEC: "BigDecimal",
    BasicType.SQL_DATE: "DateTypeInfo",
    BasicType.SQL_TIME: "TimeTypeInfo",
    BasicType.SQL_TIMESTAMP: "TimestampTypeInfo",
}


@register_type
@dataclass(frozen=True, repr=False)
class BasicTypeInfo(TypeInformation):
    """One of BasicType; what it says of itself is a row of ``basic_types.DESCRIPTIONS``."""

    basic: BasicType
    kind: ClassVar[str] = "basic"

    @property
    def _description(self) -> Description:
        return DESCRIPTIONS[self.basic]

    @property
    def immutable(self) -> bool:
        return True

    def describe(self) -> str:
        return self.basic.name

    def __str__(self) -> str:
        return _TEXTS.get(self.basic, self.basic.name)

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "name": self.basic.name}

    @classmethod
    def read_json(cls, data: dict[str, Any]) -> BasicTypeInfo:
        return cls(BasicType[data["name"]])

    @classmethod
    def names(cls) -> Names:
        ddl: dict[str, DdlWord] = {}
        python: dict[Any, TypeInformation] = {}
        avro: dict[str, AvroReader] = {}
        avro_logical: dict[str, AvroReader] = {}
        for basic, description in DESCRIPTIONS.items():
            made = cls(basic)
            make = _always(made)
            ddl |= dict.fromkeys(description.ddl, DdlWord(make))
            ddl |= dict.fromkeys(description.sized_ddl, DdlWord(make, at_least=1, at_most=1, sized=True))
            python |= dict.fromkeys(description.python, made)
            avro |= {name: _reading(made, read) for name, read in description.avro.items()}
            avro_logical |= {name: _reading(made, read) for name, read in description.avro_logical.items()}
        return Names(ddl, python, avro, avro_logical)

    def arrow_type(self) -> pa.DataType:
        return self._description.arrow

    def column_reader(self) -> ColumnReader:
        return self._description.read

    def column_writer(self) -> ColumnWriter:
        about = self._description
        return checked_writer(self, about.classes, about.refused, about.to_arrow)

    def column_check(self) -> ColumnCheck:
        return self._description.check

    def text_form(self) -> Show:
        return self._description.show

    def stored_form(self) -> Form:
        return self._description.form(self)

    def stored_column(self) -> Column:
        return self._description.column

    @property
    def cell_class(self) -> type | None:
        return self.stored_form().plain

    @property
    def in_numpy(self) -> bool:
        return self._description.in_numpy

    @property
    def number(self) -> type | None:
        return self._description.number

    @property
    def unlimited(self) -> bool:
        return self._description.unlimited

    def key_form(self) -> KeyForm:
        return self._description.key(self.basic.name)

    def key_column(self) -> Column:
        return self._description.key_column

    @property
    def key_in_arrow(self) -> bool:
        return self._description.key_in_arrow

    @property
    def groups_in_arrow(self) -> bool:
        return True

    def change_from(self, old: TypeInformation) -> Change | None:
        return same if isinstance(old, BasicTypeInfo) and self.basic in old._description.wider else None

    def keeps_hash_of(self, old: TypeInformation) -> bool:
        family = self._description.hash_family
        return family is not None and isinstance(old, BasicTypeInfo) and old._description.hash_family == family


def _avro_decimal(schema: Any, read: FromJson) -> tuple[TypeInformation, FromJson]:
    precision, scale = schema["precision"], schema.get("scale", 0)
    return DecimalTypeInfo(precision, scale), lambda found: decimal.Decimal(
        int.from_bytes(read(found), "big", signed=True)
    ).scaleb(-scale)


@register_type
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

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "precision": self.precision, "scale": self.scale}

    @classmethod
    def read_json(cls, data: dict[str, Any]) -> DecimalTypeInfo:
        return cls(data["precision"], data["scale"])

    @classmethod
    def names(cls) -> Names:
        word = DdlWord(lambda precision=10, scale=0: cls(precision, scale), at_most=2, sized=True)
        return Names(ddl=dict.fromkeys(("decimal", "dec", "numeric"), word), avro_logical={"decimal": _avro_decimal})

    def arrow_type(self) -> pa.DataType:
        return pa.decimal128(self.precision, self.scale)

    def column_reader(self) -> ColumnReader:
        return arrow_read.plain

    def column_writer(self) -> ColumnWriter:
        return checked_writer(self, (decimal.Decimal, int), (bool,))

    def column_check(self) -> ColumnCheck:
        return column_checks.decimals(self.precision, self.scale)

    def stored_form(self) -> Form:
        return decimal_form(self.precision, self.scale)(self)

    def stored_column(self) -> Column:
        return table_scalars.decimals(self.arrow_type())

    def key_form(self) -> KeyForm:
        return DecimalForm(self.describe(), self.precision, self.scale)

    def key_column(self) -> Column:
        return table_scalars.key_decimals(self.arrow_type(), self.scale)

    @property
    def groups_in_arrow(self) -> bool:
        return True

    def change_from(self, old: TypeInformation) -> Change | None:
        if not isinstance(old, DecimalTypeInfo):
            return None
        whole = self.precision - self.scale >= old.precision - old.scale
        return same if whole and self.scale >= old.scale else None

    def keeps_hash_of(self, old: TypeInformation) -> bool:
        return (
            isinstance(old, DecimalTypeInfo)
            and old.scale == self.scale
            and (old.precision <= MAX_LONG_DIGITS) == (self.precision <= MAX_LONG_DIGITS)
        )


@register_type
@dataclass(frozen=True, repr=False)
class PickledBytesTypeInfo(TypeInformation):
    """Any Python object; the only type whose values are pickled."""

    kind: ClassVar[str] = "pickled"
    declared: ClassVar[bool] = False

    @property
    def immutable(self) -> bool:
        return False

    @property
    def pickled(self) -> bool:
        return True

    def describe(self) -> str:
        return "PICKLED_BYTE_ARRAY"

    def __str__(self) -> str:
        return "PickledByteArrayTypeInfo"

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind}

    @classmethod
    def read_json(cls, data: dict[str, Any]) -> PickledBytesTypeInfo:
        return cls()

    @classmethod
    def names(cls) -> Names:
        return Names(python={Any: cls(), object: cls()})

    def arrow_type(self) -> pa.DataType:
        return pa.binary()

    def column_reader(self) -> ColumnReader:
        return arrow_read.mapped(pickling.loads)

    def column_writer(self) -> ColumnWriter:
        return lambda values: pa.array(list(map(pickling.dumps, values)), pa.binary())

    def column_check(self) -> ColumnCheck:
        return column_checks.always

    def stored_form(self) -> Form:
        return pickled_form(self)

    def stored_column(self) -> Column:
        return plain(pa.binary())

    def key_form(self) -> KeyForm:
        return UndeclaredForm()

    def key_column(self) -> Column:
        return plain(pa.binary())
