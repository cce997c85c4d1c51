"""From a program to a job graph: ids, parallelism, partitioning, and programs that cannot be one."""

from __future__ import annotations

import threading

import cloudpickle
import pytest

from holdfast.connectors.discard import DiscardSink
from holdfast.datastream import StreamExecutionEnvironment
from holdfast.errors import NotPicklableError, ProgramError
from holdfast.graph.facts_of_graph import job_facts
from holdfast.graph.job_graph import operator_id_of_uid
from holdfast.runtime.partitioners import Broadcast, Forward, Global, KeyGroupHash, Rebalance
from tests.graph.programs import Program, named


@pytest.mark.parametrize(
    ("uid", "operator_id"),
    [
        ("source-id", "bd9c186e89cc37a76d776844dfa8ccba"),
        ("mapper-id", "c9cecfed5cae9d489451c50e442666e3"),
        ("uid", "0e1febe90327d1cea326114660ec1de8"),
        ("hello", "029bbd41b3a7d8cb191dae486a901e5b"),
    ],
)
def test_ids_of_uids_are_flinks(uid: str, operator_id: str) -> None:
    program = Program()
    program.sink(program.source()).uid = uid
    assert named(program.build(), "Sink").operator_id == operator_id == operator_id_of_uid(uid)


def test_a_uid_hash_says_what_is_restored_and_not_what_the_operator_is_called() -> None:
    program = Program()
    sink = program.sink(program.source())
    sink.uid, sink.uid_hash = "hello", "bd9c186e89cc37a76d776844dfa8ccba"
    graph = program.build()
    assert named(graph, "Sink").operator_id == operator_id_of_uid("hello")
    facts = next(o for o in job_facts(graph).operators if o.uid == "hello")
    assert (facts.operator_id, facts.uid_hash) == (operator_id_of_uid("hello"), sink.uid_hash)


@pytest.mark.parametrize("wrong", ["", "count", "0" * 31, "g" * 32, None])
def test_a_uid_hash_is_an_id(wrong: str) -> None:
    stream = StreamExecutionEnvironment.get_execution_environment().from_collection([1])
    with pytest.raises(ProgramError, match="32 hexadecimal digits; got"):
        stream.set_uid_hash(wrong)


def test_a_uid_hash_is_not_the_id_of_another_operator() -> None:
    program = Program()
    source = program.source()
    source.uid = "hello"
    sink = program.sink(source)
    sink.uid, sink.uid_hash = "sink", operator_id_of_uid("hello")
    with pytest.raises(ProgramError, match=r"'Sink' has set_uid_hash.*, and 'Source' looks for the state of the same"):
        program.build()
    sink.uid_hash = operator_id_of_uid("sink")
    assert named(program.build(), "Sink").operator_id == sink.uid_hash


def test_ids_without_uid_are_stable_and_change_with_the_graph() -> None:
    def ids(with_filter: bool = False) -> list[str]:
        program = Program()
        source = program.source()
        if with_filter:
            source = program.map(source, name="Filter")
        program.sink(program.map(source))
        return [o.operator_id for o in program.build().operators if o.name in ("Map", "Sink")]

    assert ids() == ids()
    assert len(set(ids())) == 2
    assert all(len(i) == 32 for i in ids())
    assert not set(ids()) & set(ids(with_filter=True))


def test_two_operators_of_one_uid_are_refused_by_name() -> None:
    program = Program()
    source = program.source("Numbers")
    source.uid = "same"
    program.sink(source, "Out").uid = "same"
    with pytest.raises(ProgramError, match="'Numbers' and 'Out' have the same uid"):
        program.build()


def test_a_program_needs_operators_and_a_sink() -> None:
    with pytest.raises(ProgramError, match="no operators"):
        Program().build()
    program = Program()
    program.map(program.source())
    with pytest.raises(ProgramError, match="no sink"):
        program.build()


# -- parallelism -------------------------------------------------------------------------------------------------------


def test_parallelism_is_the_operators_own_or_the_jobs_within_the_sources_limit() -> None:
    program = Program()
    source = program.source()
    source.parallelism_limit = 1
    three = program.map(source, name="Three")
    three.parallelism = 3
    program.sink(three)
    graph = program.build(parallelism=4)
    assert [(o.name, o.parallelism) for o in graph.operators] == [("Source", 1), ("Three", 3), ("Sink", 4)]


def test_more_subtasks_than_a_source_can_have_are_refused() -> None:
    program = Program()
    source = program.source()
    source.parallelism_limit, source.parallelism = 1, 3
    program.sink(source)
    with pytest.raises(ProgramError, match="'Source' runs with at most 1 subtasks, and 3 were asked for"):
        program.build()


def test_the_maximum_follows_the_parallelism_where_nothing_is_set() -> None:
    program = Program()
    source = program.source()
    source.parallelism = 100
    program.sink(source)
    assert [(o.max_parallelism, o.max_parallelism_explicit) for o in program.build(parallelism=2).operators] == [
        (256, False),
        (128, False),
    ]


def test_the_snapshots_maximum_is_adopted_only_where_none_is_set() -> None:
    program = Program()
    own = program.map(program.source(), name="Own")
    own.uid, own.max_parallelism = "own", 77
    program.sink(own).uid = "sink"
    adopted = {operator_id_of_uid("own"): 99, operator_id_of_uid("sink"): 99}
    graph = program.build(parallelism=2, adopted=adopted)
    assert {o.name: o.max_parallelism for o in graph.operators} == {"Source": 128, "Own": 77, "Sink": 99}
    with_job = program.build(parallelism=2, adopted=adopted, max_parallelism=50)
    assert {o.name: (o.max_parallelism, o.max_parallelism_explicit) for o in with_job.operators} == {
        "Source": (50, True),
        "Own": (77, True),
        "Sink": (50, True),
    }


def test_parallelism_above_the_maximum_is_refused_with_both_numbers() -> None:
    program = Program()
    keyed = program.keyed(program.source(), "Average")
    keyed.parallelism, keyed.max_parallelism = 9, 8
    program.sink(keyed)
    with pytest.raises(
        ProgramError, match=r"'Average': parallelism 9 is above its maximum parallelism 8.*set_max_parallelism"
    ):
        program.build()


class Counted(DiscardSink):
    subtasks = 0

    def bind_parallelism(self, parallelism: int) -> None:
        self.subtasks = parallelism


def test_a_sink_is_told_how_many_subtasks_it_has_before_it_travels() -> None:
    program = Program()
    program.sink(program.source()).body = Counted()
    assert cloudpickle.loads(named(program.build(parallelism=3), "Sink").body).subtasks == 3


# -- partitioning ------------------------------------------------------------------------------------------------------


def test_neighbours_are_forward_at_equal_parallelism_and_rebalance_otherwise() -> None:
    program = Program()
    source = program.source()
    source.parallelism = 1
    same = program.map(source, name="Same")
    same.parallelism = 1
    program.sink(same)
    graph = program.build(parallelism=4)
    assert [type(e.partitioner) for e in graph.edges] == [Forward, Rebalance]


def test_an_explicit_partitioner_stays_and_a_key_becomes_a_hash_with_the_targets_maximum() -> None:
    program = Program()
    source = program.source()
    keyed = program.keyed(source)
    keyed.max_parallelism = 50
    program.sink(keyed, partitioner=Global())
    program.map(source, name="All", partitioner=Broadcast())
    graph = program.build()
    by_target = {e.target.name: e.partitioner for e in graph.edges}
    assert isinstance(by_target["Keyed"], KeyGroupHash) and by_target["Keyed"].max_parallelism == 50
    assert isinstance(by_target["Sink"], Global)
    assert isinstance(by_target["All"], Broadcast)


def test_forward_between_different_parallelisms_is_refused_with_both_sides() -> None:
    program = Program()
    source = program.source()
    source.parallelism = 1
    program.sink(source, partitioner=Forward())
    with pytest.raises(ProgramError, match=r"forward\(\) from 'Source' \(1 subtasks\) to 'Sink' \(2\)"):
        program.build(parallelism=2)


# -- what cannot travel ------------------------------------------------------------------------------------------------


class Connected:
    def __init__(self) -> None:
        self.name = "fine"
        self.connection = threading.Lock()

    def map(self, value: int) -> int:
        return value


def test_a_function_that_cannot_be_pickled_names_operator_and_field() -> None:
    program = Program()
    program.sink(program.map(program.source(), name="Look up", body=Connected()))
    with pytest.raises(NotPicklableError, match=r"'Look up' cannot be sent.*field 'connection'.*open\(\)"):
        program.build()


def test_a_key_selector_that_cannot_be_pickled_names_the_operator_behind_it() -> None:
    lock = threading.Lock()
    program = Program()
    program.sink(program.keyed(program.source(), "Average", selector=lambda value: (value, lock)))
    with pytest.raises(NotPicklableError, match="The key selector before 'Average' cannot be sent"):
        program.build()
