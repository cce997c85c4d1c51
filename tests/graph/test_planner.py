"""From the job graph to the plan: chains, levels, numbered edges."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.graph.job_graph import JobGraph
from holdfast.graph.planner import PlannedJob, plan_job
from holdfast.graph.stream_graph import Connection
from holdfast.runtime.output_tag import OutputTag
from holdfast.runtime.partitioners import Broadcast, Rebalance
from holdfast.runtime.plan import ChainSpec, TaskOptions
from holdfast.state.heap.backend import HeapBackend
from holdfast.types.typeinfo import Types
from tests.graph.programs import Program, identity


def plan(graph: JobGraph) -> PlannedJob:
    return plan_job(graph, HeapBackend.from_options({}), TaskOptions())


def chain_names(planned: PlannedJob) -> list[list[str]]:
    return [[o.name for o in chain.operators] for chain in planned.plan.chains]


def chain_of(planned: PlannedJob, name: str) -> ChainSpec:
    return next(c for c in planned.plan.chains if any(o.name == name for o in c.operators))


def edge_names(planned: PlannedJob) -> list[tuple[str, str]]:
    names = {o.operator_id: o.name for o in planned.plan.operators()}
    return [(names[e.source_operator], names[e.target_operator]) for e in planned.plan.edges]


def straight(**changes: Any) -> Program:
    """Source -> Map -> Sink, all of one parallelism."""
    program = Program()
    source = program.source()
    mapped = program.map(source)
    sink = program.sink(mapped)
    for name, value in changes.items():
        setattr(mapped, name, value)
    assert sink.inputs
    return program


def test_neighbours_of_one_parallelism_are_one_chain() -> None:
    planned = plan(straight().build())
    assert chain_names(planned) == [["Source", "Map", "Sink"]]
    assert planned.plan.edges == ()
    assert planned.plan.levels == range(1)
    chain = planned.plan.chains[0]
    ids = [o.operator_id for o in chain.operators]
    assert dict(chain.links) == {ids[0]: (ids[1],), ids[1]: (ids[2],), ids[2]: ()}
    assert set(chain.outputs.values()) == {()}
    assert chain.inputs == ()


@pytest.mark.parametrize(
    ("changes", "chains"),
    [
        ({"chainable": False}, [["Source"], ["Map"], ["Sink"]]),
        ({"chain_head": True}, [["Source"], ["Map", "Sink"]]),
        ({"parallelism": 1}, [["Source"], ["Map"], ["Sink"]]),
    ],
    ids=["disable_chaining", "start_new_chain", "another parallelism"],
)
def test_what_breaks_a_chain(changes: dict[str, Any], chains: list[list[str]]) -> None:
    planned = plan(straight(**changes).build())
    assert chain_names(planned) == chains
    assert [c.level for c in planned.plan.chains] == list(range(len(chains)))


def test_a_repartitioning_breaks_a_chain() -> None:
    program = Program()
    program.sink(program.map(program.source(), partitioner=Rebalance()))
    assert chain_names(plan(program.build())) == [["Source"], ["Map", "Sink"]]


def test_a_key_breaks_a_chain_and_makes_its_operator_keyed() -> None:
    program = Program()
    program.sink(program.keyed(program.source()))
    planned = plan(program.build())
    assert chain_names(planned) == [["Source"], ["Keyed", "Sink"]]
    keyed, sink = chain_of(planned, "Keyed").operators
    assert (keyed.keyed, keyed.key_type) == (True, Types.LONG())
    assert (sink.keyed, sink.key_type) == (False, None)
    (edge,) = planned.plan.edges
    assert (edge.source_parallelism, edge.target_parallelism, edge.target_level) == (2, 2, 1)


def test_a_stream_with_two_consumers_is_chained_to_both() -> None:
    program = Program()
    source = program.source()
    program.sink(program.map(source, name="Left"), "Left Sink")
    program.sink(program.map(source, name="Right"), "Right Sink")
    planned = plan(program.build())
    assert chain_names(planned) == [["Source", "Left", "Right", "Left Sink", "Right Sink"]]
    chain = planned.plan.chains[0]
    assert len(chain.links[chain.operators[0].operator_id]) == 2


def test_an_operator_with_two_inputs_heads_its_own_chain() -> None:
    program = Program()
    program.sink(program.map(program.source("A"), program.source("B"), name="Union"))
    planned = plan(program.build())
    assert chain_names(planned) == [["A"], ["B"], ["Union", "Sink"]]
    assert chain_of(planned, "Union").inputs == (0, 1)
    assert [c.level for c in planned.plan.chains] == [0, 0, 1]


def test_a_level_is_one_behind_the_last_input_and_edges_may_skip_levels() -> None:
    program = Program()
    near, far = program.source("Near"), program.source("Far")
    keyed = program.keyed(far, "First")
    second = program.keyed(keyed, "Second")
    program.sink(program.map(near, second, name="Union"))
    planned = plan(program.build())
    levels = {c.operators[0].name: c.level for c in planned.plan.chains}
    assert levels == {"Near": 0, "Far": 0, "First": 1, "Second": 2, "Union": 3}
    skipping = next(
        e for e, names in zip(planned.plan.edges, edge_names(planned), strict=True) if names == ("Near", "Union")
    )
    assert skipping.target_level == 3
    assert planned.plan.levels == range(4)


def test_broadcast_edges_have_the_lowest_numbers() -> None:
    program = Program()
    rows, rules = program.source("Rows"), program.source("Rules")
    inputs = [Connection(rows, Rebalance()), Connection(rules, Broadcast(), input_index=1)]
    node = program.graph.add("Match", None, identity, Types.LONG(), inputs)
    node.factory = rows.factory
    program.sink(node)
    planned = plan(program.build())
    assert edge_names(planned) == [("Rules", "Match"), ("Rows", "Match")]
    assert [e.edge_id for e in planned.plan.edges] == [0, 1]
    assert [e.input_index for e in planned.plan.edges] == [1, 0]
    assert chain_of(planned, "Match").inputs == (1, 0)


def test_slots_are_the_greatest_parallelism() -> None:
    program = straight(parallelism=5)
    planned = plan(program.build(parallelism=3))
    assert planned.plan.slots == 5
    assert [len(planned.plan.chains_of(1, slot)) for slot in (0, 4)] == [1, 1]
    assert [len(planned.plan.chains_of(2, slot)) for slot in (2, 3)] == [1, 0]


def test_a_data_frame_is_no_chain_but_an_input_of_level_0_with_one_channel() -> None:
    program = Program()
    frame = program.graph.add("Frame", None, None, Types.LONG(), [])
    frame.data_frame, frame.parallelism = object(), 1
    mapped = program.map(frame)
    mapped.parallelism = 1
    program.sink(mapped)
    planned = plan(program.build(parallelism=3))
    assert chain_names(planned) == [["Map"], ["Sink"]]
    assert [c.level for c in planned.plan.chains] == [1, 2]
    (source,) = planned.data_frames
    assert (source.group, source.name, source.data_frame, source.edge_ids) == (1, "Frame", frame.data_frame, (0,))
    edge = planned.plan.edges[0]
    assert (edge.of_data_frame, edge.source_parallelism) == (True, 1)
    assert planned.plan.levels == range(1, 3), "it has no source of its own"


def test_event_time_of_a_stream_is_known_to_its_edges() -> None:
    program = Program()
    source = program.source()
    timed = program.map(source, name="Timed")
    timed.event_time = True
    keyed = program.keyed(timed)
    program.sink(keyed, partitioner=Rebalance())
    planned = plan(program.build())
    assert [e.event_time for e in planned.plan.edges] == [True, True]
    assert [o.event_time for o in planned.plan.operators()] == [False, True, True, True]


def test_of_two_connected_streams_the_first_is_consumed_first() -> None:
    program = Program()
    first, second = program.source("A"), program.source("B")
    connected = program.map(second, first, name="Connected")
    connected.inputs[0].input_index = 1
    connected.inputs.reverse()
    program.sink(connected)
    planned = plan(program.build())
    names = {o.operator_id: o.name for o in planned.plan.operators()}
    assert [(names[e.source_operator], e.input_index) for e in planned.plan.edges] == [("A", 0), ("B", 1)]


def test_side_outputs_are_edges_and_links_with_a_name() -> None:
    program = Program()
    mapped = program.map(program.source())
    chained, apart = program.sink(mapped, "Chained"), program.sink(mapped, "Apart", Rebalance())
    chained.inputs[0].tag = OutputTag("one", Types.LONG())
    apart.inputs[0].tag = OutputTag("two", Types.STRING())
    planned = plan(program.build())
    chain = chain_of(planned, "Map")
    ids = {o.name: o.operator_id for o in planned.plan.operators()}
    assert chain.side_links == {ids["Chained"]: "one"}
    (edge,) = planned.plan.edges
    assert (edge.tag_id, edge.type_info, edge.target_operator) == ("two", Types.STRING(), ids["Apart"])
    assert {o.name: o.side_outputs for o in chain.operators} == {
        "Source": {},
        "Map": {"one": Types.LONG(), "two": Types.STRING()},
        "Chained": {},
    }


def test_chaining_can_be_switched_off() -> None:
    assert chain_names(plan(straight().build(chaining=False))) == [["Source"], ["Map"], ["Sink"]]
