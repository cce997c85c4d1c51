"""Columns of files and columns of declared types: inference, comparison and safe casts."""

from __future__ import annotations

import pyarrow as pa
from pyarrow import types as kinds

from holdfast.errors import ProgramError, UnfitFileError
from holdfast.types.information import TypeInformation
from holdfast.types.typeinfo import Types

#: The bits of a number that a floating point type holds exactly.
_EXACT_BITS = {16: 11, 32: 24, 64: 53}


def check_columns(location: str, found: pa.Schema, wanted: pa.Schema) -> None:
    """UnfitFileError unless every wanted column is there, once, with a type that can be cast without loss."""
    problems = []
    for field in wanted:
        index = found.get_field_index(field.name)
        if index < 0:
            problems.append(f"column {field.name!r} is missing or there twice")
        elif not castable(found.field(index).type, field.type):
            problems.append(f"column {field.name!r} is {found.field(index).type}, which does not fit {field.type}")
    if problems:
        raise UnfitFileError(
            f"{location} does not have the declared columns: {'; '.join(problems)}. "
            f"The file has ({describe(found)}), the source expects ({describe(wanted)}). "
            "Declare the schema that the file has, or keep such files out of the directory."
        )


def conform(location: str, batch: pa.RecordBatch, wanted: pa.Schema) -> pa.RecordBatch:
    """The wanted columns in their order, cast. The schema of the file must have been checked."""
    columns = []
    for field in wanted:
        column = batch.column(field.name)
        if column.type != field.type:
            try:
                column = column.cast(field.type)
            except pa.ArrowInvalid as cause:
                raise UnfitFileError(
                    f"{location}: column {field.name!r} of {column.type} has a value that {field.type} cannot hold "
                    f"({cause}). "
                    "Declare a wider type, or correct the file."
                ) from cause
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=wanted)


def castable(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a cast keeps every value. Timestamps may be cut; then the cast itself fails where a value would
    change."""
    if found == wanted or kinds.is_null(found):
        return True
    if kinds.is_dictionary(found):
        return castable(found.value_type, wanted)
    if kinds.is_integer(found):
        return _integer_fits(found, wanted)
    if kinds.is_floating(found):
        return kinds.is_floating(wanted) and bool(found.bit_width <= wanted.bit_width)
    if kinds.is_decimal(found) and kinds.is_decimal(wanted):
        digits, wanted_digits = found.precision - found.scale, wanted.precision - wanted.scale
        return bool(found.scale <= wanted.scale and digits <= wanted_digits)
    if kinds.is_timestamp(found):
        return bool(kinds.is_timestamp(wanted))
    if kinds.is_date(found):
        return bool(kinds.is_date(wanted))
    if kinds.is_time(found):
        return bool(kinds.is_time(wanted))
    if _is_text(found) or _is_bytes(found):
        return _is_text(found) == _is_text(wanted) and _is_bytes(found) == _is_bytes(wanted)
    return _nested_fits(found, wanted)


def _integer_fits(found: pa.DataType, wanted: pa.DataType) -> bool:
    if kinds.is_floating(wanted):
        return bool(found.bit_width <= _EXACT_BITS[wanted.bit_width])
    if not kinds.is_integer(wanted):
        return False
    if kinds.is_signed_integer(found) == kinds.is_signed_integer(wanted):
        return bool(found.bit_width <= wanted.bit_width)
    return bool(kinds.is_unsigned_integer(found) and found.bit_width < wanted.bit_width)


def _nested_fits(found: pa.DataType, wanted: pa.DataType) -> bool:
    if _is_list(found):
        return _is_list(wanted) and castable(found.value_type, wanted.value_type)
    if kinds.is_map(found):
        return bool(
            kinds.is_map(wanted)
            and castable(found.key_type, wanted.key_type)
            and castable(found.item_type, wanted.item_type)
        )
    if kinds.is_struct(found) and kinds.is_struct(wanted):
        return [field.name for field in found] == [field.name for field in wanted] and all(
            castable(one.type, other.type) for one, other in zip(found, wanted, strict=True)
        )
    return False


def _is_text(data_type: pa.DataType) -> bool:
    return bool(kinds.is_string(data_type) or kinds.is_large_string(data_type) or kinds.is_string_view(data_type))


def _is_bytes(data_type: pa.DataType) -> bool:
    return bool(
        kinds.is_binary(data_type)
        or kinds.is_large_binary(data_type)
        or kinds.is_binary_view(data_type)
        or kinds.is_fixed_size_binary(data_type)
    )


def _is_list(data_type: pa.DataType) -> bool:
    return bool(kinds.is_list(data_type) or kinds.is_large_list(data_type) or kinds.is_fixed_size_list(data_type))


_INFERRED: dict[pa.DataType, TypeInformation] = {
    pa.bool_(): Types.BOOLEAN(),
    pa.int8(): Types.BYTE(),
    pa.int16(): Types.SHORT(),
    pa.int32(): Types.INT(),
    pa.int64(): Types.LONG(),
    pa.uint8(): Types.SHORT(),
    pa.uint16(): Types.INT(),
    pa.uint32(): Types.LONG(),
    pa.float32(): Types.FLOAT(),
    pa.float64(): Types.DOUBLE(),
    pa.date32(): Types.SQL_DATE(),
    pa.date64(): Types.SQL_DATE(),
}


def infer(location: str, schema: pa.Schema) -> TypeInformation:
    """The row type whose columns are those of a file."""
    types = []
    for field in schema:
        inferred = _infer(field.type)
        if inferred is None:
            raise ProgramError(
                f"Column {field.name!r} of {location} is {field.type}, for which Holdfast has no type. "
                "Give the source a schema without this column."
            )
        types.append(inferred)
    return Types.ROW_NAMED([field.name for field in schema], types)


def _infer(found: pa.DataType) -> TypeInformation | None:
    if found in _INFERRED:
        return _INFERRED[found]
    if kinds.is_dictionary(found):
        return _infer(found.value_type)
    if _is_text(found):
        return Types.STRING()
    if _is_bytes(found):
        return Types.BYTES()
    if kinds.is_decimal(found) and found.precision <= 38 and 0 <= found.scale <= found.precision:
        return Types.DECIMAL(found.precision, found.scale)
    if kinds.is_timestamp(found):
        return Types.SQL_TIMESTAMP() if found.tz is None else Types.TIMESTAMP_LTZ()
    if kinds.is_time(found):
        return Types.SQL_TIME()
    return _infer_nested(found)


def _infer_nested(found: pa.DataType) -> TypeInformation | None:
    if _is_list(found):
        element = _infer(found.value_type)
        return None if element is None else Types.LIST(element)
    if kinds.is_map(found):
        key, value = _infer(found.key_type), _infer(found.item_type)
        return None if key is None or value is None else Types.MAP(key, value)
    if kinds.is_struct(found) and found.num_fields:
        fields = [(field.name, _infer(field.type)) for field in found]
        types = [inferred for _, inferred in fields if inferred is not None]
        return Types.ROW_NAMED([name for name, _ in fields], types) if len(types) == len(fields) else None
    return None


def describe(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)
