"""Files of CSV that have a schema: what is read as rows, and what is written."""

from pyflink.common import Row, Types, WatermarkStrategy
from pyflink.datastream.connectors.file_system import FileSink, FileSource
from pyflink.datastream.formats.csv import CsvBulkWriters, CsvReaderFormat, CsvSchema

from tests.parity.case import facts, program, told

NAMED = Types.ROW_NAMED(["name", "n", "good"], [Types.STRING(), Types.LONG(), Types.BOOLEAN()])
ROWS = [("tea", 1, True), ("green tea", -2, False), ('grün, "fresh"', 2**40, True), ("", 0, False)]


def columns():
    return CsvSchema.builder().add_string_column("name").add_number_column("n").add_boolean_column("good")


def read(env, out, schema, text):
    path = out / "in.csv"
    path.write_text(text)
    source = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(schema), str(path)).build()
    rows = env.from_source(source, WatermarkStrategy.no_watermarks(), "csv")
    return rows.map(lambda row: f"{row} {row[0]!r} {row.n!r} {row.good!r}", Types.STRING())


@program(8)
def csv_read(env, out):
    text = 'tea,1,true\n"green, ""fresh""",-2,false\n,1099511627776,true\n'
    return read(env, out, columns().build(), text)


@program(8)
def csv_read_with_settings(env, out):
    schema = columns().set_column_separator("|").set_quote_char("'").set_null_value("none").set_allow_comments()
    text = "tea|1|true\n# no row\n'a|b'|none|false\nnone|3|true\n"
    return read(env, out, schema.build(), text)


@program(8)
def csv_read_with_a_header(env, out):
    schema = columns().set_use_header().set_strict_headers().build()
    return read(env, out, schema, "name,n,good\ntea,1,true\nmilk,2,false\n")


@program(8)
def csv_read_with_arrays(env, out):
    schema = columns().add_array_column("parts").add_array_column("numbers", "#").build()
    path = out / "in.csv"
    path.write_text("tea,1,true,a;b,c#d\nmilk,2,false,e,f\n")
    source = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(schema), str(path)).build()
    rows = env.from_source(source, WatermarkStrategy.no_watermarks(), "csv")
    return rows.map(lambda row: f"{row.name} {list(row.parts)} {list(row.numbers)}", Types.STRING())


def write(env, out, schema, rows, kind):
    """The lines of its files."""
    sink = FileSink.for_bulk_format(str(out / "out"), CsvBulkWriters.for_schema(schema)).build()
    env.from_collection(rows, kind).sink_to(sink)
    env.execute("write")


@program(8)
def csv_written(env, out):
    write(env, out, columns().build(), ROWS, NAMED)


@program(8)
def csv_written_with_settings(env, out):
    schema = columns().set_column_separator("|").set_quote_char("'").set_null_value("none").build()
    write(env, out, schema, [*ROWS, ("a|b", 3, True), ("it's", 4, True), (None, 5, None)], NAMED)


@program(8)
def csv_written_with_arrays(env, out):
    kind = Types.ROW_NAMED(["name", "parts"], [Types.STRING(), Types.BASIC_ARRAY(Types.STRING())])
    schema = CsvSchema.builder().add_string_column("name").add_array_column("parts", "#").build()
    write(env, out, schema, [Row("tea", ["a", "b"]), Row("milk", ["c"])], kind)


@program(8)
def csv_there_and_back(env, out):
    write(env, out, columns().build(), ROWS, NAMED)
    source = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(columns().build()), str(out / "out"))
    rows = env.from_source(source.build(), WatermarkStrategy.no_watermarks(), "csv")
    return rows.map(lambda row: (row.name, row.n, row.good), Types.PICKLED_BYTE_ARRAY())


@facts(8)
def schemas(_, __):
    schema = columns().build()
    return told(
        lambda: str(schema.size()),
        lambda: str(len(schema)),
        lambda: str(columns().add_columns_from(schema).build().size()),
        lambda: str(CsvSchema.builder().add_string_column("other").add_columns_from(schema).build().size()),
        lambda: str(columns().clear_columns().add_string_column("one").build().size()),
    )
