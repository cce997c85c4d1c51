"""The demo's input: the thread that writes it and the source that sees its end."""

from __future__ import annotations

import time

import pyarrow.parquet as pq

from holdfast.demo.ending_source import EndingFileSource
from holdfast.demo.events import END_MARKER, SCHEMA, SensorFeed
from holdfast.runtime.source import ReaderContext, ReadLimit


def read(reader, rows=1_000_000):
    return [value for batch in reader.read(ReadLimit(rows, time.monotonic() + 60)) for value in batch.values]


def write(feed, files):
    for _ in range(files):
        feed._write_file()


def feed_of(directory, seed=1):
    return SensorFeed(directory, events_per_second=400, sensors=5, seed=seed)


def test_a_feed_ends_with_its_marker(tmp_path):
    feed = feed_of(tmp_path)
    feed.start()
    feed.end()
    feed._thread.join(20)
    assert (tmp_path / END_MARKER).exists()
    files = sorted(tmp_path.glob("events-*.parquet"))
    assert sum(pq.read_metadata(file).num_rows for file in files) == feed.events


def test_the_source_goes_on_until_the_marker_is_there(tmp_path):
    feed = feed_of(tmp_path)
    write(feed, 2)
    reader = EndingFileSource(tmp_path, SCHEMA, END_MARKER).create_reader(ReaderContext(0, 1, None))
    assert len(read(reader)) == 200
    assert not reader.ended
    write(feed, 1)
    (tmp_path / END_MARKER).touch()
    assert len(read(reader)) == 100
    assert reader.ended


def test_the_source_does_not_end_before_the_last_row(tmp_path):
    write(feed_of(tmp_path), 2)
    (tmp_path / END_MARKER).touch()
    reader = EndingFileSource(tmp_path, SCHEMA, END_MARKER).create_reader(ReaderContext(0, 1, None))
    assert len(read(reader, rows=150)) == 150
    assert not reader.ended
    assert len(read(reader, rows=150)) == 50
    read(reader)
    assert reader.ended


def test_a_restored_reader_goes_on_where_it_was(tmp_path):
    write(feed_of(tmp_path), 2)
    source = EndingFileSource(tmp_path, SCHEMA, END_MARKER)
    first = source.create_reader(ReaderContext(0, 1, None))
    before = read(first, rows=120)
    second = source.create_reader(ReaderContext(0, 1, first.positions()))
    rows = [(row.sensor, row.reading) for row in before + read(second)]
    files = [pq.read_table(file).to_pylist() for file in sorted(tmp_path.glob("events-*.parquet"))]
    assert rows == [(row["sensor"], row["reading"]) for file in files for row in file]
