"""What a program may say about streams: connecting, joining, partitioning and side outputs, and what is refused."""

from __future__ import annotations

import json
import pickle
import threading

import pytest

from holdfast.common import Types
from holdfast.datastream import (
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    DataStream,
    KeyedCoProcessFunction,
    OutputTag,
    StreamExecutionEnvironment,
)
from holdfast.errors import NotPicklableError, ProgramError

PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])


class Co(CoProcessFunction):
    def process_element1(self, value, ctx):
        yield value

    process_element2 = process_element1


class KeyedCo(KeyedCoProcessFunction):
    def process_element1(self, value, ctx):
        yield value

    process_element2 = process_element1


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment()


@pytest.fixture
def rows(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_collection([("a", 1)], PAIR).map(lambda row: row, PAIR).name("rows")


@pytest.fixture
def others(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_collection([2], Types.LONG()).name("others")


class TestConnect:
    def test_keys_of_two_types_never_meet(self, rows: DataStream, others: DataStream) -> None:
        first, second = rows.key_by(lambda row: row[0], Types.STRING()), others.key_by(lambda n: n, Types.LONG())
        with pytest.raises(
            ProgramError, match=r"connect\(\) of 'rows' and 'others': the keys of the first are STRING, .* second LONG"
        ):
            first.connect(second)
        with pytest.raises(ProgramError, match=r"keys of the first are STRING, .* give both the same key_type"):
            rows.connect(others).key_by("f0", lambda n: n, Types.LONG())

    def test_one_keyed_stream_gives_no_state_by_key(self, rows: DataStream, others: DataStream) -> None:
        for connected in (rows.key_by(lambda row: row[0]).connect(others), rows.connect(others.key_by(lambda n: n))):
            node = connected.process(Co(), PAIR)._node
            assert not node.keyed and node.key_type is None
            assert sum(connection.key_by is not None for connection in node.inputs) == 1
            with pytest.raises(TypeError, match="needs two keyed streams"):
                connected.process(KeyedCo())

    def test_functions_of_the_wrong_kind(self, rows: DataStream, others: DataStream) -> None:
        connected = rows.connect(others)
        for call, kind in (
            (connected.map, CoMapFunction),
            (connected.flat_map, CoFlatMapFunction),
            (connected.process, CoProcessFunction),
        ):
            with pytest.raises(TypeError, match=f"takes a {kind.__name__}.*; got function"):
                call(lambda row: row)
        for function in (Co(), KeyedCo()):
            with pytest.raises(TypeError, match=r"Co needs a second stream: put connect"):
                rows.process(function)
        with pytest.raises(TypeError, match=r"needs two keyed streams: put key_by\(...\) on both before"):
            connected.process(KeyedCo())

    def test_keyed_streams_take_both_kinds_of_process_functions(self, rows: DataStream, others: DataStream) -> None:
        keyed = rows.connect(others).key_by(lambda row: row[1], lambda n: n, Types.LONG())
        for function in (Co(), KeyedCo()):
            assert keyed.process(function, PAIR).get_type() == PAIR


class TestUnion:
    def test_of_several_streams(self, env: StreamExecutionEnvironment, rows: DataStream) -> None:
        more = [env.from_collection([], PAIR) for _ in range(3)]
        assert len(rows.union(*more)._node.inputs) == 4

    def test_of_keyed_streams_has_no_key(self, rows: DataStream) -> None:
        keyed = rows.key_by(lambda row: row[0])
        assert not keyed.union(rows.key_by(lambda row: row[1]))._node.keyed

    def test_of_two_types(self, rows: DataStream, others: DataStream) -> None:
        with pytest.raises(ProgramError, match=r"union\(\) of 'rows' .* with 'others' .*: the types differ"):
            rows.union(others)
        with pytest.raises(ProgramError, match=r"union\(\) takes streams; got 5"):
            rows.union(5)  # type: ignore[arg-type]  # what is refused


class TestSideOutputs:
    def test_they_have_the_type_of_their_tag(self, rows: DataStream) -> None:
        assert rows.get_side_output(OutputTag("late", Types.LONG())).get_type() == Types.LONG()
        assert rows.get_side_output(OutputTag("row", [Types.LONG()])).rebalance().get_type() == Types.ROW(
            [Types.LONG()]
        )
        assert rows.get_side_output(OutputTag("any")).filter(bool).get_type() == Types.PICKLED_BYTE_ARRAY()

    def test_one_name_has_one_type(self, rows: DataStream) -> None:
        rows.get_side_output(OutputTag("late", Types.LONG()))
        rows.get_side_output(OutputTag("late", Types.LONG()))
        with pytest.raises(ProgramError, match="'late' of 'rows' was asked for as LONG, and now as STRING"):
            rows.get_side_output(OutputTag("late", Types.STRING()))

    def test_a_tag_has_a_name(self) -> None:
        for name in ("", None, 5):
            with pytest.raises(ProgramError, match="needs a name") as refused:
                OutputTag(name)  # type: ignore[arg-type]  # what is refused
            assert isinstance(refused.value, ValueError), "programs of PyFlink catch it as such"

    def test_tags_of_one_name_are_one(self) -> None:
        tag = OutputTag("late", PAIR)
        copied = pickle.loads(pickle.dumps(tag))
        assert copied == tag == OutputTag("late") != OutputTag("early")
        assert (copied.type_info, hash(copied)) == (PAIR, hash(tag))

    def test_what_has_none(self, rows: DataStream, others: DataStream) -> None:
        tag = OutputTag("late")
        with pytest.raises(ProgramError, match="The source 'others' has no side output 'late'"):
            others.get_side_output(tag)
        with pytest.raises(ProgramError, match="takes an OutputTag; got 'late'"):
            rows.get_side_output("late")  # type: ignore[arg-type]  # what is refused
        with pytest.raises(ProgramError, match="'late' of 'rows' is no operator of its own"):
            rows.get_side_output(tag).uid("mine")


class TestPartitioning:
    def test_what_is_no_partitioner(self, rows: DataStream) -> None:
        with pytest.raises(TypeError, match="the partitioner must be a function or have partition"):
            rows.partition_custom(5, lambda row: row)
        with pytest.raises(TypeError, match="the key selector must be a function or have get_key"):
            rows.partition_custom(lambda key, n: 0, "f0")

    def test_functions_that_cannot_be_sent(self, env: StreamExecutionEnvironment, rows: DataStream) -> None:
        lock = threading.Lock()
        rows.partition_custom(lambda key, n: lock and 0, lambda row: row).print()
        with pytest.raises(NotPicklableError, match="The partitioner before 'Print' cannot be sent to the executors"):
            env.get_execution_plan()

    def test_fields_that_cannot_be_projected(self, rows: DataStream, others: DataStream) -> None:
        assert rows.project(1, 0).get_type() == Types.TUPLE([Types.LONG(), Types.STRING()])
        for indexes in ((2,), (-1,), ()):
            with pytest.raises(ProgramError, match="takes positions of fields, from 0 to 1"):
                rows.project(*indexes)
        with pytest.raises(ProgramError, match="needs a stream of tuples or rows"):
            others.project(0)


def test_the_plan_as_text(env: StreamExecutionEnvironment, rows: DataStream, others: DataStream) -> None:
    rows.connect(others.rebalance()).process(Co(), PAIR).print()
    nodes = json.loads(env.set_parallelism(3).get_execution_plan())["nodes"]
    assert [(n["type"], n["pact"], n["parallelism"]) for n in nodes] == [
        ("Collection Source", "Data Source", 1),
        ("rows", "Operator", 3),
        ("others", "Data Source", 1),
        ("Co-Process", "Operator", 3),
        ("Print", "Data Sink", 3),
    ]
    assert nodes[3]["predecessors"] == [
        {"id": 2, "ship_strategy": "FORWARD", "side": "second"},
        {"id": 3, "ship_strategy": "REBALANCE", "side": "second"},
    ]
