"""``str`` and ``repr`` of types are those of PyFlink 2.3.0, which programs print and tests compare."""

from __future__ import annotations

import pytest

from holdfast.common import Types
from holdfast.types.typeinfo import TypeInformation

INT, TEXT = Types.INT(), Types.STRING()

TEXTS: dict[str, TypeInformation] = {
    "String": TEXT,
    "Byte": Types.BYTE(),
    "Boolean": Types.BOOLEAN(),
    "Short": Types.SHORT(),
    "Integer": INT,
    "Long": Types.LONG(),
    "Float": Types.FLOAT(),
    "Double": Types.DOUBLE(),
    "Char": Types.CHAR(),
    "BigInteger": Types.BIG_INT(),
    "BigDecimal": Types.BIG_DEC(),
    "Instant": Types.INSTANT(),
    "DateTypeInfo": Types.SQL_DATE(),
    "TimeTypeInfo": Types.SQL_TIME(),
    "TimestampTypeInfo": Types.SQL_TIMESTAMP(),
    "PickledByteArrayTypeInfo": Types.PICKLED_BYTE_ARRAY(),
    "RowTypeInfo(Integer, String)": Types.ROW([INT, TEXT]),
    "RowTypeInfo(a: Integer, b: String)": Types.ROW_NAMED(["a", "b"], [INT, TEXT]),
    "TupleTypeInfo(Integer, String)": Types.TUPLE([INT, TEXT]),
    "PrimitiveArrayTypeInfo<Integer>": Types.PRIMITIVE_ARRAY(INT),
    "PrimitiveArrayTypeInfo<Byte>": Types.PRIMITIVE_ARRAY(Types.BYTE()),
    "BasicArrayTypeInfo<String>": Types.BASIC_ARRAY(TEXT),
    "ObjectArrayTypeInfo<RowTypeInfo(Integer)>": Types.OBJECT_ARRAY(Types.ROW([INT])),
    "MapTypeInfo<String, Integer>": Types.MAP(TEXT, INT),
    "ListTypeInfo<RowTypeInfo(MapTypeInfo<String, ListTypeInfo<Integer>>)>": Types.LIST(
        Types.ROW([Types.MAP(TEXT, Types.LIST(INT))])
    ),
}


@pytest.mark.parametrize("text", TEXTS)
def test_a_type_is_written_as_by_pyflink(text: str) -> None:
    assert (str(TEXTS[text]), repr(TEXTS[text])) == (text, text)


def test_fields_are_found_by_name() -> None:
    row = Types.ROW_NAMED(["a", "b"], [INT, TEXT])
    assert (row.get_field_index("b"), row.get_field_names()) == (1, ["a", "b"])
    with pytest.raises(ValueError):
        row.get_field_index("c")
    assert Types.LIST(TEXT).elem_type == TEXT  # type: ignore[attr-defined]  # of lists
