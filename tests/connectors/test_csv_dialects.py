"""CSV by a schema and one record per message: characters, quotes and words as Flink has them.

What is expected of ``FLINKS`` was written by apache-flink 2.3.0, by its CsvRowSerializationSchema.
"""

from __future__ import annotations

import datetime as dt
import math
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from holdfast.common import Configuration, RestartStrategies, Row, Types, WatermarkStrategy
from holdfast.connectors.csv_dialect import CsvDialect
from holdfast.connectors.serialization import DeserializationSchema
from holdfast.datastream import StreamExecutionEnvironment
from holdfast.datastream.connectors import FileSink, FileSource, RollingPolicy, StreamFormat
from holdfast.datastream.formats.csv import (
    CsvBulkWriters,
    CsvReaderFormat,
    CsvRowDeserializationSchema,
    CsvRowSerializationSchema,
    CsvSchema,
)
from holdfast.errors import ConfigurationError, ProgramError, StorageError
from holdfast.runtime.epoch import EpochSpec
from holdfast.testing import InProcessEngine
from tests.connectors.driving import read_epoch, readers_of

ONE = Types.ROW([Types.STRING()])
TWO = Types.ROW([Types.STRING(), Types.STRING()])
NUMBERED = Types.ROW_NAMED(["name", "n"], [Types.STRING(), Types.INT()])

#: A text and its record.
FLINKS = {
    "a": "a",
    "a b": '"a b"',
    "a,b": '"a,b"',
    'a"b': '"a""b"',
    "x" * 24: "x" * 24,
    "x" * 25: '"' + "x" * 25 + '"',
    "": "",
    "a#b": '"a#b"',
    "a-b": "a-b",
    "(a)": '"(a)"',
    " a": '" a"',
    "a+b": '"a+b"',
    "a\nb": '"a\nb"',
    "a\\b": '"a\\b"',
    "é": "é",
    "a/b": "a/b",
    "a!": '"a!"',
}


@pytest.mark.parametrize("text", FLINKS)
def test_texts_are_quoted_as_by_flink(text: str) -> None:
    written = CsvRowSerializationSchema.Builder(ONE).build().serialize(Row(text))
    assert written == f"{FLINKS[text]}\n".encode()


@pytest.mark.parametrize(
    ("text", "expected"),
    [("123'4**", "'123''4****'"), ("a;b'c", "'a;b''c'"), ("a*b", "'a**b'"), ("abc", "abc"), ("a:b", "'a:b'")],
)
def test_escapes_are_written_as_by_flink(text: str, expected: str) -> None:
    builder = CsvRowSerializationSchema.Builder(ONE).set_escape_character("*").set_quote_character("'")
    schema = builder.set_array_element_delimiter(":").set_field_delimiter(";").build()
    assert schema.serialize((text,)) == f"{expected}\n".encode()


def test_settings_of_written_records() -> None:
    def builder() -> Any:
        return CsvRowSerializationSchema.Builder(TWO)

    assert builder().disable_quote_character().build().serialize(("a,b", 'c"d')) == b'a,b,c"d\n'
    assert builder().build().serialize((None, "x")) == b",x\n"
    assert builder().set_null_literal("n/a").build().serialize((None, "x")) == b"n/a,x\n"
    assert builder().set_line_delimiter("\r").build().serialize(("a", "x")) == b"a,x\r"
    assert builder().set_line_delimiter("").build().serialize(("a", "x")) == b"a,x"
    with pytest.raises(ValueError, match="has 1 fields; the schema was made for 2"):
        builder().build().serialize(("a",))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, "1"),
        (True, "true"),
        (0.1, "0.1"),
        (1e10, "1.0E10"),
        (-1.5e-7, "-1.5E-7"),
        (9999999.0, "9999999.0"),
        (0.0, "0.0"),
        (math.nan, "NaN"),
        (-math.inf, "-Infinity"),
        (Decimal("1.50"), "1.50"),
        (dt.date(2020, 1, 2), "2020-01-02"),
        (dt.time(1, 2, 3), "01:02:03"),
        (dt.datetime(2020, 1, 2, 3, 4, 5, 678000), '"2020-01-02 03:04:05.678"'),
        (["p", "q r"], '"p;q r"'),
        (["p", None], "p;"),
        (Row("1", "hello"), "1;hello"),
        (b"abc", "YWJj"),
    ],
)
def test_values_are_written_as_by_flink(value: Any, expected: str) -> None:
    assert CsvDialect().record([value]) == f"{expected}\n"


def reading(type_info: Any, *messages: bytes, **settings: Any) -> list[Any]:
    builder = CsvRowDeserializationSchema.Builder(type_info)
    for name, value in settings.items():
        getattr(builder, f"set_{name}")(value)
    schema: DeserializationSchema = pickle.loads(pickle.dumps(builder.build()))
    return [tuple(row) for row in schema.deserialize_all(list(messages)).values]


def test_records_are_read_as_by_flink() -> None:
    assert reading(NUMBERED, b"a,1", b"a,1\n", b",1", b'"a ""b",1') == [("a", 1), ("a", 1), ("", 1), ('a "b', 1)]
    assert reading(NUMBERED, b"n,n", b'"n",1', null_literal="n") == [(None, None), (None, 1)]
    assert reading(NUMBERED, b",", null_literal="") == [(None, None)]
    assert reading(NUMBERED, b"#x\na,1", allow_comments=True) == [("a", 1)]
    assert reading(NUMBERED, b"#x,1") == [("#x", 1)]
    assert reading(NUMBERED, b"'a\\'b'|1", escape_character="\\", quote_character="'", field_delimiter="|") == [
        ("a'b", 1)
    ]
    arrays = Types.ROW([Types.STRING(), Types.BASIC_ARRAY(Types.INT())])
    assert reading(arrays, b"a,1;2", b"a,") == [("a", [1, 2]), ("a", [])]
    assert reading(arrays, b"a,1:2", array_element_delimiter=":") == [("a", [1, 2])]
    assert reading(Types.ROW([Types.BOOLEAN(), Types.DOUBLE()]), b"TRUE,1e3") == [(True, 1000.0)]
    times = Types.ROW([Types.SQL_DATE(), Types.SQL_TIMESTAMP()])
    assert reading(times, b"2020-01-02,2020-01-02 03:04:05.678") == [
        (dt.date(2020, 1, 2), dt.datetime(2020, 1, 2, 3, 4, 5, 678000))
    ]


@pytest.mark.parametrize("message", [b"a,", b"a", b"a,1,2", b"a,x", b'a,"b'])
def test_records_that_do_not_fit_are_errors(message: bytes) -> None:
    with pytest.raises(ValueError):
        reading(NUMBERED, message)
    with pytest.raises(ValueError):
        reading(NUMBERED, b"a,1", message)


def test_errors_that_are_ignored_leave_none_or_nothing() -> None:
    rows = reading(NUMBERED, b"a,x", b"b,2", b"c", b"d,1,2", ignore_parse_errors=True)
    assert rows == [("a", None), ("b", 2), ("c", None)]
    schema = CsvRowDeserializationSchema.Builder(NUMBERED).set_ignore_parse_errors(True).build()
    batch, kept = schema.read_all([b"d,1,2", b"b,2"])
    assert (len(batch), kept) == (1, [1])
    assert schema.read_all([b"b,2"])[1] is None
    assert schema.deserialize(b"d,1,2") is None


def test_what_is_written_is_read() -> None:
    values = [("a,b", 'c"d'), ("e f", "g"), ("", "#h"), ("x" * 30, "ü")]
    writing = pickle.loads(pickle.dumps(CsvRowSerializationSchema.Builder(TWO).build()))
    assert reading(TWO, *writing.serialize_all(values)) == values


@pytest.mark.parametrize("wrong", [{"separator": ""}, {"quote": "ä"}, {"escape": "xx"}, {"separator": '"'}])
def test_characters_that_cannot_be(wrong: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match="The CSV "):
        CsvDialect(**wrong)


def test_a_type_without_fields_is_refused() -> None:
    with pytest.raises(ProgramError, match="LONG has none"):
        CsvRowSerializationSchema.Builder(Types.LONG())
    with pytest.raises(TypeError, match="must not be None"):
        CsvRowDeserializationSchema.Builder(None)


# -- files


def items() -> CsvSchema:
    return (
        CsvSchema.builder()
        .add_number_column("id", number_type=Types.INT())
        .add_string_column("name")
        .add_array_column("list", ",", element_type=Types.STRING())
        .set_column_separator("|")
        .set_escape_char("\\")
        .set_use_header()
        .set_strict_headers()
        .build()
    )


ROWS = [(1, "a|b", ["x", "y z"]), (2, "c d", []), (3, "", ["#"])]
ROW_TYPE = Types.ROW_NAMED(["id", "name", "list"], [Types.INT(), Types.STRING(), Types.LIST(Types.STRING())])


def environment() -> StreamExecutionEnvironment:
    given = {"parallelism.default": "1", "holdfast.epoch.max-rows": "1"}
    return StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(given))


def read(schema: CsvSchema, path: Path) -> list[tuple[Any, ...]]:
    env = environment()
    source = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(schema), str(path)).build()
    assert source.output_type() == schema.row_type()
    with InProcessEngine().installed():
        rows = env.from_source(source, WatermarkStrategy.no_watermarks(), "csv").execute_and_collect()
        return [tuple(row) for row in rows]


def write(schema: CsvSchema, path: Path, rows: list[Any], row_type: Any = ROW_TYPE) -> list[str]:
    """The contents of the files that a job writes that loses an epoch."""
    env = environment()
    env.enable_checkpointing(10)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(2, 0))
    stream = env.from_collection(rows, row_type)
    stream.sink_to(FileSink.for_bulk_format(str(path), CsvBulkWriters.for_schema(schema)).build())
    lost: list[int] = []

    def lose(spec: EpochSpec) -> None:
        if spec.epoch == 2 and not lost:
            lost.append(spec.attempt)
            raise OSError("the executor is gone")

    with InProcessEngine(after_epoch=lose).installed():
        env.execute("csv")
    assert lost == [1]
    files = [one for one in path.rglob("*.csv") if "_holdfast_staging" not in one.parts]
    return sorted(one.read_bytes().decode() for one in files)


def test_files_of_a_schema_are_written_and_read_exactly_once(tmp_path: Path) -> None:
    contents = write(items(), tmp_path / "out", ROWS)
    # A text with a character that is not above the separator is quoted, and nearly all characters are below "|".
    header = '"id"|"name"|"list"\n'
    assert contents == [f'{header}1|"a|b"|"x,y z"\n', f'{header}2|"c d"|\n', f'{header}3||"#"\n']
    assert sorted(read(items(), tmp_path / "out")) == ROWS


def test_a_32_bit_number_is_written_with_its_own_digits(tmp_path: Path) -> None:
    schema = CsvSchema.builder().add_number_column("n", Types.FLOAT()).set_line_separator("\r\n").build()
    assert write(schema, tmp_path / "out", [(0.1,), (2.5,)], Types.ROW([Types.FLOAT()])) == ["0.1\r\n", "2.5\r\n"]


def test_comments_headers_and_the_first_row(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("# made by hand\nb,a\nskipped,0\n# more\ntwo,2\n\n  # last\nthree,3\n")
    builder = CsvSchema.builder().add_number_column("a").add_string_column("b").set_allow_comments().set_use_header()
    assert read(builder.set_skip_first_data_row().build(), tmp_path) == [(2, "two"), (3, "three")]
    assert read(builder.set_skip_first_data_row(False).build(), tmp_path)[0] == (0, "skipped")


def test_null_values_and_quotes(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("'it''s',1\n-,-\n,3\n")
    builder = CsvSchema.builder().add_string_column("a").add_number_column("b", Types.INT())
    schema = builder.set_quote_char("'").set_null_value("-").build()
    assert read(schema, tmp_path) == [("it's", 1), (None, None), ("", 3)]


def reader_of(schema: CsvSchema, path: Path) -> Any:
    source = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(schema), str(path)).build()
    (reader,) = readers_of(source, 1)
    return reader


def test_strict_headers_are_compared(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("name|id|list\nx|1|\n")
    with pytest.raises(StorageError, match="with strict headers exactly"):
        read_epoch(reader_of(items(), tmp_path))


def test_a_bad_line_is_named_among_comments(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("# one\n1\n# two\nx\n")
    schema = CsvSchema.builder().add_number_column("a").set_allow_comments().build()
    with pytest.raises(StorageError, match="line 4: the record cannot be read"):
        read_epoch(reader_of(schema, tmp_path))


def test_builders_of_schemas() -> None:
    builder = CsvSchema.builder().add_array_column("a").add_boolean_column("b").add_columns_from(items())
    assert (builder.size(), len(builder), len(builder.build())) == (5, 5, 5)
    assert builder.build().row_type().get_field_names() == ["a", "b", "id", "name", "list"]
    assert builder.set_array_element_separator(":").remove_array_element_separator(4).build().array_separators() == {
        "a": ";",
        "list": ":",
    }
    assert builder.add_columns_from(items()).size() == 5, "a name that is there already is left out"
    with pytest.raises(ValueError, match="Column separator must be a single char, got"):
        builder.set_column_separator("||")
    with pytest.raises(ProgramError, match="needs columns"):
        builder.clear_columns().build()
    with pytest.raises(ProgramError, match="a row has the columns of the schema"):
        builder.set_any_property_name("x")


def test_sinks_check_their_columns(tmp_path: Path) -> None:
    stream = environment().from_collection([(1, "a", ["b"])], ROW_TYPE)

    def sink(schema: CsvSchema) -> FileSink:
        return FileSink.for_bulk_format(str(tmp_path), CsvBulkWriters.for_schema(schema)).build()

    with pytest.raises(ProgramError, match="has 1 columns, \\['a'\\], and the rows of"):
        stream.sink_to(sink(CsvSchema.builder().add_string_column("a").build()))
    plain = CsvSchema.builder().add_number_column("a").add_string_column("b").add_string_column("c").build()
    with pytest.raises(ProgramError, match="Column 'c' of the CSV schema is a single value"):
        stream.sink_to(sink(plain))
    with pytest.raises(ProgramError, match="need a declared type"):
        environment().from_collection([1]).sink_to(sink(plain))
    with pytest.raises(ProgramError, match="takes a format such as"):
        FileSink.for_bulk_format(str(tmp_path), StreamFormat.text_line_format())  # type: ignore[arg-type]
    builder = FileSink.for_bulk_format(str(tmp_path), CsvBulkWriters.for_schema(plain))
    assert isinstance(builder, FileSink.BulkFormatBuilder)
    with pytest.raises(ValueError, match="should be OnCheckpointRollingPolicy for bulk format"):
        builder.with_rolling_policy(RollingPolicy.default_rolling_policy())
