"""Spark's DDL text as type information."""

from __future__ import annotations

import pytest

from holdfast.errors import ProgramError
from holdfast.types.ddl import parse_ddl
from holdfast.types.typeinfo import Types


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bigint", Types.LONG()),
        ("  BigInt ", Types.LONG()),
        ("int", Types.INT()),
        ("smallint", Types.SHORT()),
        ("tinyint", Types.BYTE()),
        ("binary", Types.BYTES()),
        ("timestamp", Types.TIMESTAMP_LTZ()),
        ("timestamp_ntz", Types.SQL_TIMESTAMP()),
        ("varchar(20)", Types.STRING()),
        ("decimal", Types.DECIMAL(10, 0)),
        ("decimal(7)", Types.DECIMAL(7, 0)),
        ("DECIMAL(10, 2)", Types.DECIMAL(10, 2)),
        ("array<map<string,bigint>>", Types.LIST(Types.MAP(Types.STRING(), Types.LONG()))),
        ("struct<a:int>", Types.ROW_NAMED(["a"], [Types.INT()])),
        ("a INT", Types.ROW_NAMED(["a"], [Types.INT()])),
        ("a INT, b STRING", Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.STRING()])),
        ("a: int, b: array<string>", Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.LIST(Types.STRING())])),
        (
            "`my ``col` INT NOT NULL COMMENT 'a, b', date DATE COMMENT 'd'",
            Types.ROW_NAMED(["my `col", "date"], [Types.INT(), Types.SQL_DATE()]),
        ),
        (
            "s STRUCT<x: DOUBLE, `y z`: STRUCT<w: DATE>>",
            Types.ROW_NAMED(
                ["s"],
                [Types.ROW_NAMED(["x", "y z"], [Types.DOUBLE(), Types.ROW_NAMED(["w"], [Types.SQL_DATE()])])],
            ),
        ),
    ],
)
def test_text_to_type(text, expected):
    assert parse_ddl(text) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the text is empty"),
        ("bigintt", "at character 1: expected a type, found 'bigintt'; types are boolean"),
        ("a INT,", "expected a column name, found ''"),
        ("a INT b STRING", "'B' is not expected after a column's type"),
        ("array<int", "at character 10: expected '>', found the end of the text"),
        ("array<>", "expected a type, found '>'"),
        ("map<int>", "expected ',', found '>'"),
        ("int>", "'>' is not expected after the type"),
        ("decimal(x)", "expected a number, found 'x'"),
        ("decimal(1,2,3)", "takes 0 to 2 numbers in brackets, found 3"),
        ("varchar", "varchar takes 1 to 1 numbers"),
        ("a INT, a INT", "field name twice"),
        ("decimal(50,2)", "precision is 1 to 38"),
        ("a; b", "at character 2: ';' is not expected"),
        ("a variant", "found 'variant'"),
    ],
)
def test_errors_point_at_the_place(text, problem):
    with pytest.raises(ProgramError) as raised:
        parse_ddl(text)
    assert problem in str(raised.value)
