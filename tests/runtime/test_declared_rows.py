"""Whoever follows an operator gets rows of the declared type, or the error, that it would get behind an exchange."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from holdfast.common import Configuration, Row, RowKind, TimestampAssigner, Types, WatermarkStrategy
from holdfast.connectors.collection import CollectionSource
from holdfast.datastream import DataStream, OutputTag, StreamExecutionEnvironment
from holdfast.errors import FunctionError, HoldfastError, RowTypeError
from holdfast.graph.job_graph import build_job_graph
from holdfast.graph.planner import plan_job
from holdfast.runtime.batch import Batch, Origin
from holdfast.runtime.declared_rows import DeclaredRows
from holdfast.runtime.plan import TaskOptions
from holdfast.runtime.source import ReaderContext, ReadLimit
from holdfast.state.backends import load_backend
from holdfast.types.typeinfo import TypeInformation
from tests.graph.programs import settings
from tests.runtime.local_job import ListSink, LocalJob, rows_of
from tests.state.canonical.distorted import distorted
from tests.state.canonical.typed_values import VALUE_TYPES

NAMED = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
LATE = OutputTag("late", NAMED)


def run(directory: Path, end: Callable[[DataStream], DataStream], rows: list[Any]) -> list[Any]:
    """The rows that ``end`` makes of a stream of such rows."""
    environment = StreamExecutionEnvironment(Configuration())
    end(environment.from_collection(rows)).sink_to(ListSink())
    job = build_job_graph(environment.get_stream_graph(), "job", "a job", settings(), parallelism=1)
    plan = plan_job(job, load_backend("heap", {}), TaskOptions(local_dir=str(directory))).plan
    return rows_of(LocalJob(plan, rows_per_subtask=100).run_epoch())


def seen(directory: Path, rows: list[Any], declared: TypeInformation, exchanged: bool) -> list[str] | str:
    """What a follower of a function that yields these rows sees of them, or why it sees nothing."""

    def follow(stream: DataStream) -> DataStream:
        given = stream.flat_map(lambda row: [row], output_type=declared)
        return (given.rebalance() if exchanged else given).map(shown, output_type=Types.STRING())

    try:
        return run(directory, follow, rows)
    except RowTypeError as error:
        return str(error)


def shown(row: Any) -> str:
    return f"{row!r} of kind {row.get_row_kind()}" if isinstance(row, Row) else repr(row)


@given(st.data())
def test_a_chained_follower_sees_what_one_behind_an_exchange_sees(data: st.DataObject) -> None:
    declared, values = data.draw(VALUE_TYPES)
    rows = data.draw(st.lists(distorted(values), min_size=1, max_size=3))
    with TemporaryDirectory() as one, TemporaryDirectory() as other:
        chained = seen(Path(one), rows, declared, exchanged=False)
        assert chained == seen(Path(other), rows, declared, exchanged=True)
    event("refused" if isinstance(chained, str) else "seen")


@pytest.mark.parametrize("exchanged", [False, True])
@pytest.mark.parametrize(
    ("declared", "row", "expected"),
    [
        (NAMED, ("Ann", 7), "Row(name='Ann', age=7) of kind +I"),
        (NAMED, Row(age=7, name="Ann"), "Row(name='Ann', age=7) of kind +I"),
        (Types.ROW([Types.STRING(), Types.INT()]), ("Ann", 7), "Row(f0='Ann', f1=7) of kind +I"),
        (NAMED, Row.of_kind(RowKind.DELETE, "Ann", 7), "Row(name='Ann', age=7) of kind -D"),
        (NAMED, Row.of_kind(RowKind.DELETE, name="Ann", age=7), "Row(name='Ann', age=7) of kind -D"),
        (Types.TUPLE([Types.STRING(), Types.INT()]), Row("Ann", 7), "('Ann', 7)"),
        (Types.DOUBLE(), 1, "1.0"),
        (Types.FLOAT(), 0.1, "0.10000000149011612"),
        (Types.LIST(Types.LONG()), (1, 2), "[1, 2]"),
    ],
    ids=repr,
)
def test_followers_get_the_declared_form(
    tmp_path: Path, declared: TypeInformation, row: Any, expected: str, exchanged: bool
) -> None:
    assert seen(tmp_path, [row], declared, exchanged) == [expected]


@pytest.mark.parametrize("exchanged", [False, True])
@pytest.mark.parametrize(
    ("declared", "row", "why"),
    [
        (Types.LONG(), 2**63, "Row 1 of a batch, 9223372036854775808, is not of the declared type LONG: "),
        (Types.LONG(), 1.5, "Row 1 of a batch, 1.5, is not of the declared type LONG: float is not LONG"),
        (Types.BYTE(), 128, "Row 1 of a batch, 128, is not of the declared type BYTE: "),
        (Types.STRING(), 5, "Row 1 of a batch, 5, is not of the declared type STRING: int is not STRING"),
    ],
    ids=repr,
)
def test_what_an_exchange_refuses_is_refused(
    tmp_path: Path, declared: TypeInformation, row: Any, why: str, exchanged: bool
) -> None:
    right: Any = "a" if declared == Types.STRING() else 1
    message = seen(tmp_path, [right, row], declared, exchanged)
    assert isinstance(message, str)
    assert why in message and "operator 'Flat Map', subtask 1/1" in message


def tag_late(row: Any) -> Iterator[Any]:
    yield LATE, row
    yield row


class Ages(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value.age)


FOLLOWERS: dict[str, Callable[[DataStream], DataStream]] = {
    "side output": lambda s: s.flat_map(tag_late).get_side_output(LATE).map(lambda r: r.name),
    "filter": lambda s: s.map(lambda r: r, NAMED).filter(lambda r: r.age > 1).map(lambda r: r.name),
    "watermarks": lambda s: (
        s.map(lambda r: r, NAMED)
        .assign_timestamps_and_watermarks(
            WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Ages())
        )
        .map(lambda r: r.name)
    ),
    "key selector": lambda s: s.map(lambda r: r, NAMED).key_by(lambda r: r.name).map(lambda r: r.name),
    "behind a key": lambda s: s.key_by(lambda r: r[0]).map(lambda r: r, NAMED).map(lambda r: r.name),
    "custom partitioner": lambda s: (
        s.map(lambda r: r, NAMED).partition_custom(lambda k, n: 0, lambda r: r.name).map(lambda r: r.name)
    ),
    "two followers": lambda s: twice(s.map(lambda r: r, NAMED)),
}


def twice(stream: DataStream) -> DataStream:
    stream.rebalance().map(lambda r: r.name).sink_to(ListSink())
    return stream.map(lambda r: r.name)


@pytest.mark.parametrize("name", FOLLOWERS)
def test_every_function_behind_a_declared_type_gets_its_form(tmp_path: Path, name: str) -> None:
    names = run(tmp_path, FOLLOWERS[name], [("Ann", 7), ("Bob", 8)])
    assert sorted(set(names)) == ["Ann", "Bob"]


KINDS = [Row("a", 1), Row.of_kind(RowKind.DELETE, "b", 2), Row("c", 3), Row.of_kind(RowKind.UPDATE_AFTER, "d", 4)]


@pytest.mark.parametrize(
    "ways",
    [
        lambda s: s.rebalance(),
        lambda s: s.key_by(lambda row: row.name),
        lambda s: s.key_by("name"),
        lambda s: s.rebalance().filter(lambda row: True).rebalance(),
        lambda s: s,
    ],
)
def test_the_kinds_of_rows_go_along(tmp_path: Path, ways: Callable[[DataStream], DataStream]) -> None:
    rows = run(tmp_path, lambda s: ways(s.map(lambda row: row, NAMED)).map(shown), KINDS)
    assert sorted(rows) == [
        "Row(name='a', age=1) of kind +I",
        "Row(name='b', age=2) of kind -D",
        "Row(name='c', age=3) of kind +I",
        "Row(name='d', age=4) of kind +U",
    ]


def test_a_collection_keeps_the_kinds_of_its_rows(tmp_path: Path) -> None:
    source = CollectionSource(KINDS, NAMED)
    (batch,) = source.create_reader(ReaderContext(0, 1, None)).read(ReadLimit(10, float("inf")))
    assert [str(row.get_row_kind()) for row in batch.values] == ["+I", "-D", "+I", "+U"]


def test_rows_of_no_declared_type_are_the_objects_that_were_given(tmp_path: Path) -> None:
    rows = run(tmp_path, lambda s: s.map(lambda row: row).map(repr), [("Ann", 7), Row(1, 2), 2**70])
    assert rows == ["('Ann', 7)", "<Row(1, 2)>", str(2**70)]
    with pytest.raises(FunctionError, match="no attribute 'name'"):
        run(tmp_path, lambda s: s.map(lambda row: row).map(lambda row: row.name), [("Ann", 7)])


def test_a_batch_in_the_declared_form_is_passed_on_as_it_is() -> None:
    declared = DeclaredRows(Types.TUPLE([Types.STRING(), Types.LONG()]), "here")
    batch = Batch([("a", 1), ("b", None)], [1, 2], [0, 0])
    assert declared.of(batch) is batch
    received = DeclaredRows(Types.TUPLE([Types.STRING(), Types.LONG()]), "here").of(Batch([("a", 1), Row("b", 2)]))
    assert received.arrow is not None and declared.of(received) is received
    assert received.values == [("a", 1), ("b", 2)]


def test_converted_rows_keep_what_travels_beside_them() -> None:
    batch = Batch([1, 2], [10, None], [5, 6])
    batch.origin = Origin("a split", frozenset(["a split"]), [10, -1])
    converted = DeclaredRows(Types.DOUBLE(), "here").of(batch)
    assert converted.origin is batch.origin
    assert (converted.values, converted.timestamps, converted.watermarks) == ([1.0, 2.0], [10, None], [5, 6])


def test_a_refused_row_says_where_it_was_given() -> None:
    with pytest.raises(HoldfastError, match=r"^here: Row 0 of a batch, 'x', is not of"):
        DeclaredRows(Types.DOUBLE(), "here").of(Batch(["x"]))
