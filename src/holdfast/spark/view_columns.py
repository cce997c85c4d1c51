"""The rows of a stream as Spark's SQL sees them: a column for each field, and one for their event times."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as kinds
from pyspark.sql import types as spark_types
from pyspark.sql.types import DataType, StructField, StructType

from holdfast.errors import ProgramError
from holdfast.runtime.batch import Batch
from holdfast.runtime.query import View
from holdfast.types.arrow import schema_of
from holdfast.types.information import TypeInformation

#: As Spark has it: microseconds, in no zone of their own.
_EVENT_TIME = pa.timestamp("us", tz="UTC")

_PLAIN: dict[pa.DataType, DataType] = {
    pa.bool_(): spark_types.BooleanType(),
    pa.int8(): spark_types.ByteType(),
    pa.int16(): spark_types.ShortType(),
    pa.int32(): spark_types.IntegerType(),
    pa.int64(): spark_types.LongType(),
    pa.float32(): spark_types.FloatType(),
    pa.float64(): spark_types.DoubleType(),
    pa.string(): spark_types.StringType(),
    pa.binary(): spark_types.BinaryType(),
    pa.date32(): spark_types.DateType(),
}


class ViewColumns:
    """Both sides of a view: what Spark is told of its columns, and how rows become these."""

    def __init__(self, view: View) -> None:
        _check(view, view.row_type)
        self._view = view
        fields = [pa.field(name, column.type) for name, column in zip(view.columns, self._given, strict=True)]
        if view.event_time_column is not None:
            fields.append(pa.field(view.event_time_column, _EVENT_TIME))
        self.spark = StructType([StructField(field.name, _spark_type(view, field)) for field in fields])
        self.arrow = pa.schema([field.with_type(_in_microseconds(field.type)) for field in fields])

    @property
    def _given(self) -> pa.Schema:
        return schema_of(self._view.row_type)

    def of(self, batch: Batch) -> pa.RecordBatch:
        """Rows that came through an exchange."""
        assert batch.arrow is not None
        columns = list(batch.arrow.columns)
        if self._view.event_time_column is not None:
            assert batch.times is not None, "the stream of the view has event time"
            columns.append(batch.times.column().cast(pa.timestamp("ms", tz="UTC")))
        try:
            cast = [column.cast(field.type) for column, field in zip(columns, self.arrow, strict=True)]
        except pa.ArrowInvalid as error:
            raise ProgramError(
                f"A row of the view '{self._view.name}' is not one of Spark's: {error}. Times in SQL have microseconds."
            ) from error
        return pa.RecordBatch.from_arrays(cast, schema=self.arrow)


def _check(view: View, type_info: TypeInformation) -> None:
    """At any depth: a value must mean in SQL what it means to the program."""
    if not type_info.parts and type_info.pickled:
        raise ProgramError(
            f"The stream of the view '{view.name}' has the type {view.row_type.describe()}, whose values are pickled: "
            "SQL could not read them. Declare the type of its rows (output_type=..., type_info=...)."
        )
    if type_info.unlimited:
        raise ProgramError(
            f"The stream of the view '{view.name}' has the type {view.row_type.describe()}, and SQL has no numbers "
            f"without limit ({type_info.describe()}). Declare 'decimal(38, 18)' or another decimal."
        )
    for part in type_info.parts:
        _check(view, part)


def _spark_type(view: View, field: pa.Field) -> DataType:
    kind = field.type
    if kind in _PLAIN:
        return _PLAIN[kind]
    if kinds.is_timestamp(kind):
        return spark_types.TimestampNTZType() if kind.tz is None else spark_types.TimestampType()
    if kinds.is_decimal(kind):
        return spark_types.DecimalType(kind.precision, kind.scale)
    if kinds.is_struct(kind):
        return StructType([StructField(part.name, _spark_type(view, part)) for part in kind])
    if kinds.is_map(kind):
        return spark_types.MapType(_spark_type(view, kind.key_field), _spark_type(view, kind.item_field))
    if kinds.is_list(kind):
        return spark_types.ArrayType(_spark_type(view, kind.value_field))
    raise ProgramError(
        f"The column '{field.name}' of the view '{view.name}' is {kind}, which SQL has no type for. Map the stream to "
        "rows without it, or with a text or a number in its place."
    )


def _in_microseconds(kind: pa.DataType) -> pa.DataType:
    """The type that Spark takes: it has no nanoseconds."""
    if kinds.is_timestamp(kind):
        return pa.timestamp("us", tz=kind.tz)
    if kinds.is_struct(kind):
        return pa.struct([part.with_type(_in_microseconds(part.type)) for part in kind])
    if kinds.is_map(kind):
        return pa.map_(_in_microseconds(kind.key_type), _in_microseconds(kind.item_type))
    if kinds.is_list(kind):
        return pa.list_(_in_microseconds(kind.value_type))
    return kind
