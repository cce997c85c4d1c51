"""The types without parameters, one row each with all that is to be known of it. A new one is a row here."""

from __future__ import annotations

import datetime as dt
import decimal
import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import numpy as np
import pyarrow as pa

from holdfast.types import arrow_read, avro_defaults, column_checks, storage_scalars, text_forms
from holdfast.types.arrow_read import ColumnReader
from holdfast.types.arrow_write import one_character
from holdfast.types.column_checks import ColumnCheck
from holdfast.types.date_times import timestamp_of, utc_timestamp_of
from holdfast.types.instant import Instant
from holdfast.types.key_forms import (
    BigDecimalForm,
    BigIntegerForm,
    BooleanForm,
    BytesForm,
    FloatForm,
    IntegerForm,
    KeyForm,
    StringForm,
)
from holdfast.types.key_times import DateForm, InstantForm, TimeForm, TimestampForm
from holdfast.types.registry import FromJson
from holdfast.types.storage_scalars import MakeForm, plain_form, whole_number_form
from holdfast.types.table_columns import Column, counted, packed, plain, text
from holdfast.types.table_scalars import big_integers, instants, key_instants
from holdfast.types.text_forms import Show


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


@dataclass(frozen=True)
class Description:
    """All that is to be known of one basic type."""

    arrow: pa.DataType
    #: The classes of values in Arrow's columns, and those that are never meant although they are subclasses.
    classes: tuple[type, ...]
    form: MakeForm
    #: Of the name of the type.
    key: Callable[[str], KeyForm]
    column: Column
    key_column: Column
    #: Whether values need no conversion.
    check: ColumnCheck
    refused: tuple[type, ...] = ()
    show: Show = str
    read: ColumnReader = arrow_read.plain
    #: What Arrow takes for a value; None where it takes the value itself.
    to_arrow: Callable[[Any], Any] | None = None
    #: What it may become.
    wider: tuple[BasicType, ...] = ()
    #: Types of one hash family hash a key alike; None: nothing else does.
    hash_family: str | None = None
    #: Of numbers of a fixed width: int or float.
    number: type | None = None
    in_numpy: bool = False
    key_in_arrow: bool = False
    unlimited: bool = False
    python: tuple[type, ...] = ()
    ddl: tuple[str, ...] = ()
    #: Words of DDL with a length, which says nothing about how values are stored.
    sized_ddl: tuple[str, ...] = ()
    avro: Mapping[str, FromJson] = field(default_factory=dict)
    avro_logical: Mapping[str, FromJson] = field(default_factory=dict)


def _whole_number(bits: int, code: str, arrow: pa.DataType) -> Description:
    return Description(
        arrow,
        (int, numbers.Integral),
        whole_number_form(bits),
        lambda name: IntegerForm(name, code),
        column=plain(arrow),
        key_column=packed(arrow, f">i{bits // 8}", f"i{bits // 8}"),
        check=column_checks.integers(bits),
        refused=(bool,),
        number=int,
        in_numpy=True,
        key_in_arrow=True,
    )


def _real_number(bits: int, code: str, arrow: pa.DataType) -> Description:
    """A FLOAT in a savepoint is a double: a state gives back what was put in, and so does its column."""
    return Description(
        arrow,
        (float, int, numbers.Real),
        plain_form(float),
        lambda name: FloatForm(name, code),
        column=plain(pa.float64()),
        key_column=packed(arrow, f">f{bits // 8}", f"f{bits // 8}"),
        check=column_checks.SINGLE if bits == 32 else column_checks.of_class(float),
        refused=(bool, decimal.Decimal),
        show=text_forms.single if bits == 32 else text_forms.double,
        number=float,
        in_numpy=True,
    )


def _timestamp(
    arrow: pa.DataType,
    read: ColumnReader,
    form: MakeForm,
    of_micros: Callable[[int], dt.datetime],
    check: ColumnCheck,
    avro: str,
) -> Description:
    units = {f"{avro}-millis": {"milliseconds": 1}, f"{avro}-micros": {"microseconds": 1}}
    return Description(
        arrow,
        (dt.datetime,),
        form,
        lambda name: TimestampForm(name, of_micros),
        column=counted(arrow, pa.int64()),
        key_column=packed(arrow, ">i8", "i8", pa.int64()),
        check=check,
        read=read,
        avro_logical={name: avro_defaults.moment(**unit) for name, unit in units.items()},
    )


DESCRIPTIONS: dict[BasicType, Description] = {
    BasicType.BOOLEAN: Description(
        pa.bool_(),
        (bool, np.bool_),
        plain_form(bool),
        BooleanForm,
        column=plain(pa.bool_()),
        key_column=plain(pa.bool_()).mapped(
            lambda keys: [key == b"\x01" for key in keys], lambda found: [b"\x01" if one else b"\x00" for one in found]
        ),
        check=column_checks.of_class(bool),
        show=text_forms.boolean,
        in_numpy=True,
        key_in_arrow=True,
        python=(bool,),
        ddl=("boolean",),
        avro={"boolean": avro_defaults.same},
    ),
    BasicType.BYTE: replace(
        _whole_number(8, "b", pa.int8()),
        wider=(BasicType.SHORT, BasicType.INT, BasicType.LONG),
        hash_family="int",
        ddl=("tinyint", "byte"),
    ),
    BasicType.SHORT: replace(
        _whole_number(16, "h", pa.int16()),
        wider=(BasicType.INT, BasicType.LONG),
        hash_family="int",
        ddl=("smallint", "short"),
    ),
    BasicType.INT: replace(
        _whole_number(32, "i", pa.int32()),
        wider=(BasicType.LONG,),
        hash_family="int",
        ddl=("int", "integer"),
        avro={"int": avro_defaults.same},
    ),
    BasicType.LONG: replace(
        _whole_number(64, "q", pa.int64()), python=(int,), ddl=("bigint", "long"), avro={"long": avro_defaults.same}
    ),
    BasicType.FLOAT: replace(
        _real_number(32, "f", pa.float32()), wider=(BasicType.DOUBLE,), ddl=("float", "real"), avro={"float": float}
    ),
    BasicType.DOUBLE: replace(
        _real_number(64, "d", pa.float64()), python=(float,), ddl=("double",), avro={"double": float}
    ),
    BasicType.STRING: Description(
        pa.string(),
        (str,),
        plain_form(str),
        StringForm,
        column=plain(pa.string()),
        key_column=text(),
        check=column_checks.TEXT,
        hash_family="text",
        key_in_arrow=True,
        python=(str,),
        ddl=("string",),
        sized_ddl=("char", "character", "varchar"),
        avro={"string": avro_defaults.same, "enum": avro_defaults.same},
    ),
    BasicType.CHAR: Description(
        pa.string(),
        (str,),
        storage_scalars.CHARACTER,
        lambda name: StringForm(name, length=1),
        column=plain(pa.string()),
        key_column=text(),
        check=column_checks.CHARACTER,
        to_arrow=one_character,
        wider=(BasicType.STRING,),
        hash_family="text",
    ),
    BasicType.BYTES: Description(
        pa.binary(),
        (bytes, bytearray, memoryview),
        plain_form(bytes),
        BytesForm,
        column=plain(pa.binary()),
        key_column=plain(pa.binary()),
        check=column_checks.of_class(bytes),
        show=text_forms.octets,
        # Arrow never lets go of what a memoryview shows.
        to_arrow=bytes,
        key_in_arrow=True,
        python=(bytes,),
        ddl=("binary",),
        avro={"bytes": avro_defaults.bytes_of, "fixed": avro_defaults.bytes_of},
    ),
    # BIG_INT and BIG_DEC have no bound on their digits, so their Arrow form is their decimal text.
    BasicType.BIG_INT: Description(
        pa.string(),
        (int, numbers.Integral),
        storage_scalars.BIG_INTEGER,
        BigIntegerForm,
        column=big_integers(),
        key_column=big_integers(),
        check=column_checks.BIG_INTEGER,
        refused=(bool,),
        read=arrow_read.mapped(int),
        to_arrow=str,
        unlimited=True,
    ),
    BasicType.BIG_DEC: Description(
        pa.string(),
        (decimal.Decimal, int),
        storage_scalars.BIG_DECIMAL,
        BigDecimalForm,
        column=plain(pa.string()),
        key_column=text(),
        check=column_checks.of_class(decimal.Decimal),
        refused=(bool,),
        read=arrow_read.mapped(decimal.Decimal),
        to_arrow=str,
        unlimited=True,
        python=(decimal.Decimal,),
    ),
    BasicType.INSTANT: Description(
        pa.timestamp("ns", "UTC"),
        (Instant,),
        storage_scalars.INSTANT,
        InstantForm,
        column=instants(),
        key_column=key_instants(),
        check=column_checks.instants(Instant),
        show=text_forms.instant,
        read=arrow_read.instants,
        to_arrow=Instant.to_epoch_nano,
        python=(Instant,),
    ),
    BasicType.SQL_DATE: Description(
        pa.date32(),
        (dt.date,),
        storage_scalars.DATE,
        DateForm,
        column=counted(pa.date32(), pa.int32()),
        key_column=packed(pa.date32(), ">i4", "i4", pa.int32()),
        check=column_checks.of_class(dt.date),
        refused=(dt.datetime,),
        read=arrow_read.temporal,
        key_in_arrow=True,
        python=(dt.date,),
        ddl=("date",),
        avro_logical={"date": avro_defaults.date},
    ),
    BasicType.SQL_TIME: Description(
        pa.time64("us"),
        (dt.time,),
        storage_scalars.TIME,
        TimeForm,
        column=counted(pa.time64("us"), pa.int64()),
        key_column=packed(pa.time64("us"), ">i8", "i8", pa.int64()),
        check=column_checks.TIME,
        show=text_forms.time,
        python=(dt.time,),
        avro_logical={
            "time-millis": avro_defaults.time(milliseconds=1),
            "time-micros": avro_defaults.time(microseconds=1),
        },
    ),
    BasicType.SQL_TIMESTAMP: replace(
        _timestamp(
            pa.timestamp("us"),
            arrow_read.temporal,
            storage_scalars.TIMESTAMP,
            timestamp_of,
            column_checks.TIMESTAMP,
            "local-timestamp",
        ),
        show=text_forms.timestamp,
        python=(dt.datetime,),
        ddl=("timestamp_ntz",),
    ),
    BasicType.TIMESTAMP_LTZ: replace(
        _timestamp(
            pa.timestamp("us", "UTC"),
            arrow_read.utc,
            storage_scalars.UTC_TIMESTAMP,
            utc_timestamp_of,
            column_checks.UTC_TIMESTAMP,
            "timestamp",
        ),
        show=text_forms.utc_timestamp,
        ddl=("timestamp", "timestamp_ltz"),
    ),
}
