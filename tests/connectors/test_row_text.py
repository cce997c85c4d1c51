"""Lines that PyFlink 2.3.0 wrote for values of declared types, and ours for the same values.

They were recorded on Java 17, of ``from_collection(values, declared)`` and of
``from_collection(values).map(lambda v: v, output_type=declared)``, by ``print()`` and by a ``FileSink`` with
``Encoder.simple_string_encoder()``. Where ``print()`` is chained to the map it has rows as they were yielded, and not
in their declared form; those lines are not here.
"""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from holdfast.common import Encoder, Instant, Row, RowKind, Types
from holdfast.connectors.row_text import line_of, printed_line_of
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.testing.in_process import InProcessEngine
from holdfast.types.arrow import exchange_writer, row_reader
from holdfast.types.settings import TextForm
from holdfast.types.typeinfo import TypeInformation
from tests.integration.programs import environment

_PAIR = Types.ROW([Types.INT(), Types.STRING()])
_MIXED = Types.TUPLE(
    [
        Types.DOUBLE(),
        Types.BOOLEAN(),
        Types.LIST(Types.INT()),
        Types.SQL_DATE(),
        Types.TUPLE([Types.INT(), Types.STRING()]),
    ]
)
_REST = Types.TUPLE(
    [
        Types.MAP(Types.STRING(), Types.INT()),
        Types.BIG_DEC(),
        Types.SQL_TIMESTAMP(),
        Types.SQL_TIME(),
        Types.INSTANT(),
        Types.FLOAT(),
    ]
)
_ARRAYS = Types.TUPLE(
    [
        Types.PRIMITIVE_ARRAY(Types.INT()),
        Types.BASIC_ARRAY(Types.STRING()),
        Types.OBJECT_ARRAY(Types.STRING()),
        Types.PRIMITIVE_ARRAY(Types.BYTE()),
    ]
)

#: Alike on the terminal and in files.
SAME: list[tuple[TypeInformation, list[tuple[Any, str]]]] = [
    (Types.STRING(), [("hi", "hi"), ("", ""), ("a b", "a b"), ("ü", "ü")]),
    (Types.BOOLEAN(), [(True, "true"), (False, "false")]),
    (Types.BYTE(), [(-128, "-128")]),
    (Types.LONG(), [(1, "1"), (-(2**63), "-9223372036854775808")]),
    (
        Types.FLOAT(),
        [
            (1.0, "1.0"),
            (0.1, "0.1"),
            (1e10, "1.0E10"),
            (1.5e-5, "1.5E-5"),
            (123456.789, "123456.79"),
            (math.inf, "Infinity"),
            (-math.inf, "-Infinity"),
            (math.nan, "NaN"),
            (-0.0, "-0.0"),
            (1e7, "1.0E7"),
            (9999999.0, "9999999.0"),
            (0.001, "0.001"),
            (0.0001, "1.0E-4"),
            (16777216.0, "1.6777216E7"),
            (3.4028234663852886e38, "3.4028235E38"),
            (1.4e-45, "1.4E-45"),
        ],
    ),
    (
        Types.DOUBLE(),
        [
            (1.0, "1.0"),
            (0.1, "0.1"),
            (1e10, "1.0E10"),
            (1.5e-5, "1.5E-5"),
            (123456.789, "123456.789"),
            (math.inf, "Infinity"),
            (-math.inf, "-Infinity"),
            (math.nan, "NaN"),
            (-0.0, "-0.0"),
            (1e7, "1.0E7"),
            (9999999.0, "9999999.0"),
            (0.001, "0.001"),
            (0.0001, "1.0E-4"),
            (1e16, "1.0E16"),
            (1e21, "1.0E21"),
            (123456789012345680.0, "1.2345678901234568E17"),
            (0.002, "0.002"),
            (5e-324, "4.9E-324"),
            (1.7976931348623157e308, "1.7976931348623157E308"),
            (100.0, "100.0"),
            (12345678.9, "1.23456789E7"),
        ],
    ),
    (
        Types.BIG_DEC(),
        [
            (Decimal("1.50"), "1.50"),
            (Decimal("1E+3"), "1E+3"),
            (Decimal("-0.001"), "-0.001"),
            (Decimal("1E-10"), "1E-10"),
            (Decimal("0.0000001"), "1E-7"),
            (Decimal("0.000001"), "0.000001"),
            (Decimal("12345678901234567890.123456789"), "12345678901234567890.123456789"),
        ],
    ),
    (Types.SQL_DATE(), [(dt.date(2020, 1, 2), "2020-01-02"), (dt.date(1969, 12, 31), "1969-12-31")]),
    (
        Types.SQL_TIME(),
        [(dt.time(1, 2, 3), "01:02:03"), (dt.time(1, 2, 3, 456000), "01:02:03"), (dt.time(1, 2), "01:02:00")],
    ),
    (
        Types.SQL_TIMESTAMP(),
        [
            (dt.datetime(2020, 1, 2, 3, 4, 5), "2020-01-02 03:04:05.0"),
            (dt.datetime(2020, 1, 2, 3, 4, 5, 678000), "2020-01-02 03:04:05.678"),
            (dt.datetime(2020, 1, 2), "2020-01-02 00:00:00.0"),
        ],
    ),
    (
        Types.INSTANT(),
        [
            (Instant(0), "1970-01-01T00:00:00Z"),
            (Instant.of_epoch_milli(1500), "1970-01-01T00:00:01.500Z"),
            (Instant(10, 123456789), "1970-01-01T00:00:10.123456789Z"),
            (Instant(10, 120000000), "1970-01-01T00:00:10.120Z"),
            (Instant(-1, 5000), "1969-12-31T23:59:59.000005Z"),
            (Instant(60), "1970-01-01T00:01:00Z"),
        ],
    ),
    (Types.TUPLE([Types.STRING(), Types.INT()]), [(("hi", 4), "(hi,4)"), (("a,b", 5), "(a,b,5)")]),
    (Types.TUPLE([Types.STRING()]), [(("hi",), "(hi)")]),
    (_MIXED, [((1e10, True, [1, 2], dt.date(2020, 1, 2), (1, "x")), "(1.0E10,true,[1, 2],2020-01-02,(1,x))")]),
    (
        Types.TUPLE([Types.INT(), _PAIR, Types.ROW_NAMED(["a"], [Types.DOUBLE()])]),
        [
            ((1, Row(1, "x"), Row(1e10)), "(1,+I[1, x],+I[1.0E10])"),
            ((1, Row(1, None), Row(a=1.0)), "(1,+I[1, null],+I[1.0])"),
        ],
    ),
    (
        _REST,
        [
            (
                ({"a": 1}, Decimal("1.50"), dt.datetime(2020, 1, 2, 3, 4, 5), dt.time(1, 2, 3), Instant(10, 5), 0.1),
                "({a=1},1.50,2020-01-02 03:04:05.0,01:02:03,1970-01-01T00:00:10.000000005Z,0.1)",
            )
        ],
    ),
    (_ARRAYS, [(([1, 2], ["a"], ["b"], b"ab"), "([1, 2],[a],[b],[97, 98])")]),
    (Types.LIST(Types.STRING()), [(["a", "b"], "[a, b]"), ([], "[]")]),
    (Types.LIST(Types.TUPLE([Types.STRING(), Types.INT()])), [([("a", 1)], "[(a,1)]")]),
    (Types.LIST(Types.ROW([Types.STRING(), Types.INT()])), [([Row("a", 1)], "[+I[a, 1]]")]),
    (Types.MAP(Types.STRING(), Types.INT()), [({"a": 1, "b": 2}, "{a=1, b=2}"), ({}, "{}")]),
]
#: With what each is in a file, where the fields are Flink's.
ROWS: list[tuple[TypeInformation, Any, str, str]] = [
    (_PAIR, Row(1, "a"), "+I[1,a]", "+I[1, a]"),
    (_PAIR, Row(2, None), "+I[2,None]", "+I[2, null]"),
    (_PAIR, Row.of_kind(RowKind.DELETE, 1, "b"), "-D[1,b]", "-D[1, b]"),
    (_PAIR, Row.of_kind(RowKind.UPDATE_AFTER, 1, "b"), "+U[1,b]", "+U[1, b]"),
    (_PAIR, Row.of_kind(RowKind.UPDATE_BEFORE, 1, "b"), "-U[1,b]", "-U[1, b]"),
    (Types.ROW_NAMED(["x", "y"], [Types.INT(), Types.STRING()]), Row(x=2, y=None), "+I[2,None]", "+I[2, null]"),
    (
        Types.ROW(
            [
                Types.DOUBLE(),
                Types.BOOLEAN(),
                Types.LIST(Types.STRING()),
                Types.SQL_DATE(),
                Types.TUPLE([Types.INT(), Types.STRING()]),
                _PAIR,
                Types.MAP(Types.STRING(), Types.INT()),
                Types.BIG_DEC(),
                Types.PRIMITIVE_ARRAY(Types.BYTE()),
                Types.SQL_TIMESTAMP(),
                Types.SQL_TIME(),
                Types.INSTANT(),
                Types.FLOAT(),
            ]
        ),
        Row(
            1e10,
            True,
            ["a", "b"],
            dt.date(2020, 1, 2),
            (1, "x"),
            Row(1, "x"),
            {"a": 1},
            Decimal("1.50"),
            b"ab",
            dt.datetime(2020, 1, 2, 3, 4, 5),
            dt.time(1, 2, 3),
            Instant(10, 5),
            0.1,
        ),
        "+I[10000000000.0,True,['a', 'b'],2020-01-02,(1, 'x'),<Row(1, 'x')>,{'a': 1},1.50,b'ab',"
        "2020-01-02 03:04:05,01:02:03,Instant<10, 5>,0.10000000149011612]",
        "+I[1.0E10, true, [a, b], 2020-01-02, (1,x), +I[1, x], {a=1}, 1.50, [97, 98], 2020-01-02 03:04:05.0, "
        "01:02:03, 1970-01-01T00:00:10.000000005Z, 0.1]",
    ),
]

CASES = [(declared, row, line, line) for declared, lines in SAME for row, line in lines] + ROWS


def declared_form(declared: TypeInformation, row: Any) -> Any:
    """What a sink is given."""
    return row_reader(declared)(exchange_writer(declared)([row]))[0]


@pytest.mark.parametrize(("declared", "row", "printed", "in_file"), CASES, ids=repr)
def test_lines_are_those_of_pyflink(declared: TypeInformation, row: Any, printed: str, in_file: str) -> None:
    value = declared_form(declared, row)
    assert printed_line_of(declared, TextForm.FLINK)(value) == printed
    assert line_of(declared, TextForm.FLINK)(value) == in_file
    assert Encoder.simple_string_encoder().for_rows(declared, TextForm.FLINK)(value) == in_file
    assert Encoder(str).for_rows(declared, TextForm.FLINK)(value) == str(value)
    assert printed_line_of(declared, TextForm.PYTHON)(value) == line_of(declared, TextForm.PYTHON)(value) == str(value)


@pytest.mark.parametrize(
    ("row", "line"),
    [
        ("hi", "hi"),
        (("hi", 4), "('hi', 4)"),
        (1e10, "10000000000.0"),
        (None, "None"),
        (True, "True"),
        (Row(1, "a"), "<Row(1, 'a')>"),
        (Row(a=1, b="x"), "Row(a=1, b='x')"),
        ({"a": 1}, "{'a': 1}"),
    ],
)
def test_rows_of_no_declared_type_are_pythons(row: Any, line: str) -> None:
    """As PyFlink prints them; into files it writes the address of an array of bytes."""
    pickled = Types.PICKLED_BYTE_ARRAY()
    assert printed_line_of(pickled, TextForm.FLINK)(row) == line_of(pickled, TextForm.FLINK)(row) == line


@pytest.mark.parametrize(
    ("declared", "row", "line"),
    [
        (Types.DOUBLE(), 2e23, "2.0E23"),  # on Java 19 and later; 1.9999999999999998E23 before
        (Types.STRING(), None, "null"),  # PyFlink fails
        (Types.BYTES(), b"a\xff", "[97, -1]"),  # PyFlink has an address, outside of tuples
        (Types.TIMESTAMP_LTZ(), dt.datetime(2020, 1, 2, 3, 4, 5, 60, dt.UTC), "2020-01-02T03:04:05.000060Z"),
        (Types.SQL_TIMESTAMP(), dt.datetime(2020, 1, 2, 3, 4, 5, 678901), "2020-01-02 03:04:05.678901"),  # .678 there
        (Types.BIG_INT(), 10**30, str(10**30)),
        (Types.CHAR(), "x", "x"),
        (Types.DECIMAL(10, 2), Decimal("1.5"), "1.50"),
        (Types.MAP(Types.LONG(), Types.LONG()), {17: 1, 3: 2}, "{17=1, 3=2}"),  # in the order of hashes there
    ],
)
def test_what_pyflink_has_not_or_has_otherwise(declared: TypeInformation, row: Any, line: str) -> None:
    value = declared_form(declared, row)
    assert printed_line_of(declared, TextForm.FLINK)(value) == line_of(declared, TextForm.FLINK)(value) == line


@pytest.mark.parametrize(
    ("form", "printed", "row", "in_file"),
    [("FLINK", "(hi,4)", "+I[hi,4]", "(hi,4)"), ("PYTHON", "('hi', 4)", "Row(f0='hi', f1=4)", "('hi', 4)")],
)
def test_the_form_is_an_option_of_the_job(
    in_process: InProcessEngine,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    form: str,
    printed: str,
    row: str,
    in_file: str,
) -> None:
    fields = [Types.STRING(), Types.INT()]
    env = environment(**{"holdfast.text-form": form}).set_parallelism(1)
    pairs = env.from_collection([("hi", 4)], Types.TUPLE(fields))
    pairs.print()
    pairs.map(lambda pair: pair, Types.ROW(fields)).print("row")
    lines = FileSink.for_row_format(str(tmp_path / "out"), Encoder.simple_string_encoder()).build()
    pairs.sink_to(lines)
    env.execute()
    assert sorted(capsys.readouterr().out.splitlines()) == sorted([printed, f"row> {row}"])
    (file,) = (tmp_path / "out").glob("part-*")
    assert file.read_text() == f"{in_file}\n"
