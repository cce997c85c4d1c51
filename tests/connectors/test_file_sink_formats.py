"""How rows become files: lines, JSON, CSV, Parquet."""

from __future__ import annotations

import datetime
import decimal
import json
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from holdfast.connectors.encoder import Encoder
from holdfast.connectors.file_sink.sink import FileSink
from holdfast.connectors.files.source import FileSource
from holdfast.connectors.sequence import NumberSequenceSource
from holdfast.errors import HoldfastError, ProgramError
from holdfast.runtime.batch import Batch
from holdfast.testing.contracts.sinks import pre_commit, transaction_name
from holdfast.types.row import Row
from holdfast.types.typeinfo import Types
from tests.connectors.directories import committed_files, staged_files
from tests.connectors.driving import limit_of, read_epoch, readers_of


@pytest.fixture
def sink(tmp_path):
    return FileSink.for_row_format(str(tmp_path), Encoder.simple_string_encoder()).build()


def test_a_line_per_row_in_utf8(tmp_path, sink):
    sink.commit([pre_commit(sink, [(1, "\u00e4"), None, Row("a")(2)])])

    assert committed_files(tmp_path)[0].read_bytes().decode() == "(1, '\u00e4')\nNone\nRow(a=2)\n"


@dataclass
class Event:
    user: str
    day: datetime.date


def test_json_of_rows_without_a_declared_type(tmp_path):
    sink = FileSink.json(str(tmp_path))
    values = [
        {"a": [1]},
        Event("x", datetime.date(2024, 1, 2)),
        Row("a", "b")(1, Row("c")(2)),
        Row(1, 2),
        (1, "x"),
        5,
        decimal.Decimal("1.5"),
        {"z": 1j},
    ]
    sink.commit([pre_commit(sink, values)])

    assert [json.loads(line) for line in committed_files(tmp_path)[0].read_text().splitlines()] == [
        {"a": [1]},
        {"user": "x", "day": "2024-01-02"},
        {"a": 1, "b": {"c": 2}},
        {"f0": 1, "f1": 2},
        {"f0": 1, "f1": "x"},
        {"value": 5},
        {"value": "1.5"},
        {"z": "1j"},
    ]


_TYPED = Types.ROW_NAMED(
    ["id", "name", "day", "cost", "at"],
    [Types.LONG(), Types.STRING(), Types.SQL_DATE(), Types.DECIMAL(10, 2), Types.SQL_TIMESTAMP()],
)
_ROW = Row("id", "name", "day", "cost", "at")
_ROWS = [
    _ROW(1, 'a, "b"', datetime.date(2024, 1, 2), decimal.Decimal("1.50"), datetime.datetime(2024, 1, 2, 3, 4, 5, 6)),
    _ROW(2, "", None, None, None),
    _ROW(None, None, datetime.date(1969, 1, 1), decimal.Decimal("-0.01"), datetime.datetime(1960, 1, 1)),
]


@pytest.mark.parametrize("kind", ["parquet", "json", "csv"])
def test_what_a_sink_writes_the_source_of_its_format_reads(tmp_path, kind):
    sink = getattr(FileSink, kind)(str(tmp_path))
    sink.bind_type(_TYPED)
    sink.commit([pre_commit(sink, _ROWS)])
    (reader,) = readers_of(getattr(FileSource, kind)(str(tmp_path), _TYPED, bounded=True), 1)

    assert read_epoch(reader) == _ROWS


@pytest.mark.parametrize("kind", ["parquet", "json", "csv"])
def test_columns_are_written_as_they_come(tmp_path, kind):
    sink = getattr(FileSink, kind)(str(tmp_path))
    sink.bind_type(Types.LONG())
    transaction = sink.begin(transaction_name())
    (reader,) = readers_of(NumberSequenceSource(1, 200_000), 1)
    for batch in reader.read(limit_of(200_000)):
        batch._reader = None  # rows are not needed
        sink.write(transaction, batch)
    sink.commit([sink.pre_commit(transaction)])
    (source,) = readers_of(getattr(FileSource, kind)(str(tmp_path), "value BIGINT", bounded=True), 1)

    assert [row.value for row in read_epoch(source)] == list(range(1, 200_001))


def test_small_batches_do_not_make_small_row_groups(tmp_path):
    sink = FileSink.parquet(str(tmp_path))
    sink.bind_type(int)
    transaction = sink.begin(transaction_name())
    for value in range(100):
        sink.write(transaction, Batch([value]))
    sink.commit([sink.pre_commit(transaction)])

    assert pq.ParquetFile(committed_files(tmp_path)[0]).num_row_groups == 1


def test_nanoseconds_survive_json(tmp_path):
    sink = FileSink.json(str(tmp_path))
    sink.bind_type(Types.ROW_NAMED(["at"], [Types.INSTANT()]))
    arrow = pa.record_batch({"at": pa.array([1_700_000_000_123_456_789], pa.timestamp("ns", "UTC"))})
    transaction = sink.begin(transaction_name())
    sink.write(transaction, Batch.of_arrow(arrow, lambda batch: batch.to_pylist()))
    sink.commit([sink.pre_commit(transaction)])

    assert json.loads(committed_files(tmp_path)[0].read_text()) == {"at": "2023-11-14 22:13:20.123456789Z"}


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_columns_need_a_declared_type(tmp_path, kind):
    sink = getattr(FileSink, kind)(str(tmp_path))

    with pytest.raises(ProgramError, match=r"need a declared type.*output_type"):
        sink.bind_type(None)


def test_csv_has_no_nested_columns(tmp_path):
    with pytest.raises(ProgramError, match="Column 'x' is list"):
        FileSink.csv(str(tmp_path)).bind_type("x ARRAY<INT>")


def test_csv_with_other_options_and_one_header_per_file(tmp_path):
    sink = FileSink.csv(str(tmp_path / "a"), delimiter=";")
    bare = FileSink.csv(str(tmp_path / "b"), header=False)
    for each in (sink, bare):
        each.bind_type("a INT, b STRING")
        transaction = each.begin(transaction_name())
        each.write(transaction, Batch([Row(1, "x")]))
        each.write(transaction, Batch([Row(2, None)]))
        each.commit([each.pre_commit(transaction)])

    assert committed_files(tmp_path / "a")[0].read_text() == '"a";"b"\n1;"x"\n2;\n'
    assert committed_files(tmp_path / "b")[0].read_text() == '1,"x"\n2,\n'


def test_a_row_of_another_type_fails_the_write_and_can_be_discarded(tmp_path):
    sink = FileSink.parquet(str(tmp_path))
    sink.bind_type(int)
    transaction = sink.begin(transaction_name())
    with pytest.raises(HoldfastError, match="LONG"):
        sink.write(transaction, Batch(["x"]))
    sink.discard(transaction)

    assert staged_files(tmp_path) == []
