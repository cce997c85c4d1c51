"""What is particular to Parquet, JSON lines, CSV and text."""

from __future__ import annotations

import bz2
import datetime
import decimal
import gzip
import lzma
import pickle
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.connectors.files.schemas import castable
from holdfast.connectors.files.source import FileSource
from holdfast.errors import ConfigurationError, ProgramError, RestoreError, StorageError
from holdfast.types.row import Row
from holdfast.types.typeinfo import Types
from tests.connectors.driving import positions_of, read_epoch, readers_of


def rows_of(source: FileSource) -> list:
    (reader,) = readers_of(source.process_static_file_set(), 1)
    rows = read_epoch(reader)
    assert reader.ended
    return rows


def plain(rows: list[Row]) -> list[tuple]:
    return [tuple(row) for row in rows]


def test_parquet_goes_on_behind_the_row_groups_that_were_read(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"n": range(1000)}), path, row_group_size=100, compression="none", use_dictionary=False)
    (reader,) = readers_of(FileSource.parquet(str(tmp_path), "n BIGINT", bounded=True), 1)
    assert plain(read_epoch(reader, 550)) == [(n,) for n in range(550)]

    # Whoever read the first groups again would stumble over them.
    begin = pq.ParquetFile(path).metadata.row_group(0).column(0).data_page_offset
    end = pq.ParquetFile(path).metadata.row_group(5).column(0).data_page_offset
    content = bytearray(path.read_bytes())
    content[begin:end] = b"\xff" * (end - begin)
    path.write_bytes(content)

    assert plain(read_epoch(pickle.loads(pickle.dumps(reader)))) == [(n,) for n in range(550, 1000)]


def test_parquet_columns_are_found_by_name_and_cast_without_loss(tmp_path):
    table = pa.table(
        {
            "unused": [[1]],
            "when": pa.array([datetime.datetime(2024, 1, 2, 3)], pa.timestamp("ns")),
            "name": pa.array(["a"]).dictionary_encode(),
            "n": pa.array([7], pa.int32()),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")

    rows = rows_of(FileSource.parquet(str(tmp_path), "n BIGINT, name STRING, when TIMESTAMP_NTZ"))

    assert rows == [Row("n", "name", "when")(7, "a", datetime.datetime(2024, 1, 2, 3))]


def test_a_parquet_value_that_a_cast_would_change_is_an_error(tmp_path):
    pq.write_table(pa.table({"t": pa.array([1], pa.timestamp("ns"))}), tmp_path / "a.parquet")

    with pytest.raises(StorageError, match=r"a\.parquet: column 't' of timestamp\[ns\].*would lose data"):
        rows_of(FileSource.parquet(str(tmp_path), "t TIMESTAMP_NTZ"))


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ("n BIGINT, other STRING", "column 'other' is missing"),
        ("n INT", "column 'n' is int64, which does not fit int32"),
        ("n STRING", "column 'n' is int64, which does not fit string"),
    ],
)
def test_parquet_with_other_columns_is_an_error_with_both_schemas(tmp_path, schema, problem):
    pq.write_table(pa.table({"n": [1]}), tmp_path / "a.parquet")

    with pytest.raises(StorageError, match=rf"a\.parquet.*{problem}.*The file has \(n int64\), the source expects"):
        rows_of(FileSource.parquet(str(tmp_path), schema))


def test_a_parquet_schema_is_inferred_from_the_first_file(tmp_path):
    table = pa.table(
        {
            "i": pa.array([1], pa.int32()),
            "u": pa.array([1], pa.uint16()),
            "d": pa.array([decimal.Decimal("1.50")], pa.decimal128(10, 2)),
            "t": pa.array([0], pa.timestamp("us", "UTC")),
            "l": [["x"]],
            "m": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
            "s": [{"a": 1.5, "b": b"x"}],
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")
    source = FileSource.parquet(str(tmp_path))

    nested = Types.ROW_NAMED(["a", "b"], [Types.DOUBLE(), Types.BYTES()])
    assert source.output_type() == Types.ROW_NAMED(
        list("iudtlms"),
        [
            Types.INT(),
            Types.INT(),
            Types.DECIMAL(10, 2),
            Types.TIMESTAMP_LTZ(),
            Types.LIST(Types.STRING()),
            Types.MAP(Types.STRING(), Types.LONG()),
            nested,
        ],
    )
    (row,) = rows_of(source)
    assert (row.i, row.u, row.d, row.l, row.m, tuple(row.s)) == (
        1,
        1,
        decimal.Decimal("1.50"),
        ["x"],
        {"k": 1},
        (1.5, b"x"),
    )


def test_inference_needs_a_file_with_known_types(tmp_path):
    with pytest.raises(ProgramError, match=r"no file with rows yet.*Give the source a schema"):
        FileSource.parquet(str(tmp_path)).output_type()
    pq.write_table(pa.table({"x": pa.array([1], pa.duration("s"))}), tmp_path / "a.parquet")
    with pytest.raises(ProgramError, match=r"Column 'x' of .*a\.parquet is duration\[s\]"):
        FileSource.parquet(str(tmp_path)).output_type()


def test_what_is_no_parquet_is_an_error_that_names_the_file(tmp_path):
    (tmp_path / "a.parquet").write_text("hello, this is a text")

    with pytest.raises(StorageError, match=r"a\.parquet cannot be read as Parquet.*move it into the directory"):
        rows_of(FileSource.parquet(str(tmp_path), "n BIGINT"))


_INTEGERS = [getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)]


@given(found=st.sampled_from(_INTEGERS), wanted=st.sampled_from([*_INTEGERS, pa.float32(), pa.float64()]))
def test_numbers_are_castable_exactly_when_their_whole_range_fits(found, wanted):
    def bounds(data_type: pa.DataType) -> tuple[int, int]:
        if pa.types.is_floating(data_type):
            exact = 2 ** {32: 24, 64: 53}[data_type.bit_width]
            return -exact, exact
        if pa.types.is_unsigned_integer(data_type):
            return 0, 2**data_type.bit_width - 1
        return -(2 ** (data_type.bit_width - 1)), 2 ** (data_type.bit_width - 1) - 1

    low, high = bounds(found)
    wanted_low, wanted_high = bounds(wanted)
    assert castable(found, wanted) == (wanted_low <= low and high <= wanted_high)


@pytest.mark.parametrize(
    ("found", "wanted", "expected"),
    [
        (pa.float32(), pa.float64(), True),
        (pa.float64(), pa.float32(), False),
        (pa.float64(), pa.int64(), False),
        (pa.decimal128(5, 2), pa.decimal128(10, 2), True),
        (pa.decimal128(10, 2), pa.decimal128(10, 4), False),
        (pa.decimal128(10, 4), pa.decimal128(12, 2), False),
        (pa.large_string(), pa.string(), True),
        (pa.binary(4), pa.binary(), True),
        (pa.binary(), pa.string(), False),
        (pa.string(), pa.binary(), False),
        (pa.date64(), pa.date32(), True),
        (pa.date32(), pa.timestamp("us"), False),
        (pa.time32("s"), pa.time64("us"), True),
        (pa.bool_(), pa.int8(), False),
        (pa.null(), pa.string(), True),
        (pa.large_list(pa.int32()), pa.list_(pa.int64()), True),
        (pa.list_(pa.int64()), pa.list_(pa.int32()), False),
        (pa.map_(pa.string(), pa.int32()), pa.map_(pa.string(), pa.int64()), True),
        (pa.struct([("a", pa.int32())]), pa.struct([("a", pa.int64())]), True),
        (pa.struct([("a", pa.int32())]), pa.struct([("b", pa.int32())]), False),
        (pa.struct([("a", pa.int32())]), pa.int32(), False),
    ],
)
def test_other_casts(found, wanted, expected):
    assert castable(found, wanted) is expected


def write(directory: Path, name: str, content: str | bytes) -> str:
    (directory / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return str(directory)


def test_json_members_become_columns(tmp_path):
    path = write(
        tmp_path,
        "a.json",
        b'\xef\xbb\xbf{"id": 1, "more": true, "when": "2024-01-02", "tags": ["x"]}\r\n\n   \n'
        b'{"tags": null, "in": {"day": "2024-01-03", "cost": "1.5"}, "id": 2}',
    )
    schema = "id BIGINT, when DATE, tags ARRAY<STRING>, in STRUCT<day: DATE, cost: DECIMAL(5, 2)>"

    first, second = rows_of(FileSource.json(path, schema))

    assert tuple(first) == (1, datetime.date(2024, 1, 2), ["x"], None)
    assert tuple(second)[:3] == (2, None, None)
    assert tuple(second[3]) == (datetime.date(2024, 1, 3), decimal.Decimal("1.50"))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"id": "x"}', "string"),
        ('{"id": 1.5}', "1.5"),
        ('{"id": ', "record cannot be read"),
        ("[1]", "array"),
        ('{"id": 1}{"id": 2}', "one line"),
        ('{"id":\n1}', "record cannot be read"),
    ],
)
def test_a_bad_json_record_is_an_error_with_file_and_line_and_loses_nothing(tmp_path, line, reason):
    good = "".join(f'{{"id": {n}}}\n' for n in range(250))
    path = write(tmp_path, "a.json", f"{good}{line}\n{good}")
    source = FileSource.json(path, "id BIGINT", bounded=True)
    (reader,) = readers_of(source, 1)
    first = read_epoch(reader, 100)
    positions = positions_of([reader])

    with pytest.raises(StorageError, match=rf"a\.json, line 251: .*{reason}.*The line begins with"):
        read_epoch(reader)
    write(tmp_path, "a.json", f"{good}{' ' * len(line)}\n{good}")
    (restored,) = readers_of(source, 1, positions)
    assert plain(first + read_epoch(restored)) == [(n,) for n in [*range(250), *range(250)]]


@pytest.mark.parametrize("column", ["MAP<STRING, INT>", "BINARY", "ARRAY<BINARY>"])
def test_types_that_json_cannot_give(tmp_path, column):
    with pytest.raises(ProgramError, match="Column 'x' of the JSON source"):
        FileSource.json(str(tmp_path), f"x {column}")


def test_csv_with_a_header_finds_columns_by_name(tmp_path):
    path = write(tmp_path, "a.csv", '\ufeffname,unused,id\r\n"a, ""b""",x,1\r\n\r\n,y,2\r\n"",z,')

    assert plain(rows_of(FileSource.csv(path, "id BIGINT, name STRING"))) == [(1, 'a, "b"'), (2, None), (None, "")]


def test_csv_without_a_header_takes_columns_by_position(tmp_path):
    path = write(tmp_path, "a.csv", "1;true;2024-01-02;1.50;2024-01-02 03:04:05\n")
    schema = "a SMALLINT, b BOOLEAN, c DATE, d DECIMAL(10, 2), e TIMESTAMP_NTZ"

    assert plain(rows_of(FileSource.csv(path, schema, header=False, delimiter=";"))) == [
        (1, True, datetime.date(2024, 1, 2), decimal.Decimal("1.50"), datetime.datetime(2024, 1, 2, 3, 4, 5))
    ]


@pytest.mark.parametrize("content", ["", "id,name", "id,name\n"])
def test_csv_without_records(tmp_path, content):
    assert rows_of(FileSource.csv(write(tmp_path, "a.csv", content), "id BIGINT, name STRING")) == []


def test_a_csv_header_without_the_columns_is_an_error(tmp_path):
    path = write(tmp_path, "a.csv", "id,nam\n1,x\n")

    with pytest.raises(
        StorageError, match=r"a\.csv.*\['name'\] are missing.*first line has \['id', 'nam'\].*expects \['id', 'name'\]"
    ):
        rows_of(FileSource.csv(path, "id BIGINT, name STRING"))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("x,b", "invalid value 'x'"),
        ("1", "Expected 2 columns"),
        ('1,"a', "does not end"),
        ("1,2,3", "Expected 2 columns"),
    ],
)
def test_a_bad_csv_record_is_an_error_with_file_and_line(tmp_path, line, reason):
    good = "".join(f"{n},name\n" for n in range(100))
    path = write(tmp_path, "a.csv", f"id,name\n{good}{line}\n{good}")
    (reader,) = readers_of(FileSource.csv(path, "id BIGINT, name STRING", bounded=True), 1)
    read_epoch(reader, 40)

    with pytest.raises(StorageError, match=rf"a\.csv, line 102: .*{reason}"):
        read_epoch(reader)


def test_a_csv_value_with_a_line_end_is_never_cut(tmp_path):
    path = write(tmp_path, "a.csv", 'name\n"a\nb"\n')

    with pytest.raises(StorageError, match=r"line 2: .*values with line ends cannot be read"):
        rows_of(FileSource.csv(path, "name STRING"))


@pytest.mark.parametrize("delimiter", ["", ";;", '"', "\n", "\u00e4"])
def test_wrong_delimiters(tmp_path, delimiter):
    with pytest.raises(ConfigurationError, match="delimiter"):
        FileSource.csv(str(tmp_path), "a INT", delimiter=delimiter)


def test_nested_types_do_not_fit_csv(tmp_path):
    with pytest.raises(ProgramError, match="Column 'x' of the CSV source"):
        FileSource.csv(str(tmp_path), "x ARRAY<INT>")


def test_text_keeps_every_line(tmp_path):
    path = write(tmp_path, "a.txt", "one\r\n\n  two \nthree")

    assert rows_of(FileSource.text(path)) == ["one", "", "  two ", "three"]


def test_text_in_another_charset(tmp_path):
    path = write(tmp_path, "a.txt", "gr\u00fc\u00dfe\n".encode("latin-1"))

    assert rows_of(FileSource.text(path, charset="ISO-8859-1")) == ["gr\u00fc\u00dfe"]
    with pytest.raises(StorageError, match=r"a\.txt, line 1: .*utf-8"):
        rows_of(FileSource.text(path))


@pytest.mark.parametrize(("charset", "reason"), [("UTF-16", "as one byte"), ("klingon", "is unknown")])
def test_charsets_in_which_lines_cannot_be_found(tmp_path, charset, reason):
    with pytest.raises(ConfigurationError, match=reason):
        FileSource.text(str(tmp_path), charset=charset)


def test_a_line_longer_than_a_block(tmp_path):
    long = "x" * (20 << 20)
    path = write(tmp_path, "a.txt", f"a\n{long}\nb\n")

    assert rows_of(FileSource.text(path)) == ["a", long, "b"]


def test_lines_that_are_compressed_in_another_way_are_refused(tmp_path):
    path = write(tmp_path, "a.json.zst", b"x")

    with pytest.raises(StorageError, match=r"a\.json\.zst is compressed.*Use one of \.gz.*or use Parquet"):
        rows_of(FileSource.json(path, "id BIGINT"))


COMPRESSIONS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


@pytest.mark.parametrize(("suffix", "compress"), COMPRESSIONS.items())
@pytest.mark.parametrize("epoch", [1, 7, 1 << 30])
def test_compressed_lines_go_on_where_they_were(tmp_path, suffix, compress, epoch):
    lines = [f'{{"id": {number}}}\n'.encode() for number in range(20)]
    # Two members behind each other are one content, as what tools append to.
    write(tmp_path, f"a.json{suffix}", compress(b"".join(lines[:9])) + compress(b"".join(lines[9:])))
    (reader,) = readers_of(FileSource.json(str(tmp_path), "id BIGINT", bounded=True), 1)
    rows = []
    while not reader.ended:
        rows += read_epoch(reader, epoch)
        reader = pickle.loads(pickle.dumps(reader))

    assert [row.id for row in rows] == list(range(20))


@pytest.mark.parametrize("suffix", ["json", "csv", "txt"])
@pytest.mark.parametrize(
    "content",
    [gzip.compress(b'{"id": 1}\n' * 999)[:-9], b"id\n1\n", gzip.compress(b"1")[:12]],
    ids=["cut off", "not compressed", "header only"],  # they hold the time, and workers must agree on names
)
def test_what_cannot_be_decompressed_is_an_error_that_names_the_file(tmp_path, suffix, content):
    path = write(tmp_path, f"a.{suffix}.gz", content)
    sources = {"json": FileSource.json(path, "id BIGINT"), "csv": FileSource.csv(path, "id BIGINT")}

    with pytest.raises(StorageError, match=rf"a\.{suffix}\.gz cannot be decompressed behind byte.*when it is complete"):
        rows_of(sources.get(suffix, FileSource.text(path)))


def test_columns_of_json_and_csv_are_taken_from_the_first_file(tmp_path):
    write(tmp_path, "a.json", b"")
    write(tmp_path, "b.json", b'{"id": 1, "name": "x", "tags": [1.5], "at": {"lat": 2}}\n{"id": 2, "name": null}\n')
    write(tmp_path, "b.json.csv", b'id;"full name";ok\n1;x;true\n')

    json_type = FileSource.json(str(tmp_path)).matching("*.json").output_type()
    csv_source = FileSource.csv(str(tmp_path), delimiter=";").matching("*.csv")

    assert json_type.field_names == ("id", "name", "tags", "at")
    assert json_type.field_types[2] == Types.LIST(Types.DOUBLE())
    assert plain(rows_of(csv_source)) == [(1, "x", True)]
    assert csv_source.output_type().field_names == ("id", "full name", "ok")
    with pytest.raises(ProgramError, match="without a header line needs a schema"):
        FileSource.csv(str(tmp_path), header=False)
    (tmp_path / "c").mkdir()
    write(tmp_path, "c/bad.json", b"[1, 2")
    with pytest.raises(ProgramError, match=r"bad\.json could not be found out.*Give the source a schema"):
        FileSource.json(str(tmp_path / "c")).output_type()


def test_other_columns_than_those_the_job_began_with_are_refused(tmp_path):
    write(tmp_path, "b.json", b'{"id": 1}\n')
    (reader,) = readers_of(FileSource.json(str(tmp_path)), 1)
    read_epoch(reader)
    positions = positions_of([reader])
    readers_of(FileSource.json(str(tmp_path)), 2, positions)
    write(tmp_path, "a.json", b'{"id": 1, "more": 2}\n')

    with pytest.raises(RestoreError, match=r"columns .* were ROW<id: LONG>.*now has ROW<id: LONG, more: LONG>"):
        readers_of(FileSource.json(str(tmp_path)), 2, positions)
    readers_of(FileSource.json(str(tmp_path), "id BIGINT"), 2, positions)
