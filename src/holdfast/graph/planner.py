"""From the job graph to the plan that tasks run: chains, levels and numbered edges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count

from holdfast.graph.job_graph import JobEdge, JobGraph, JobOperator, is_broadcast
from holdfast.runtime.data_frame_input import DataFrameInput
from holdfast.runtime.plan import ChainSpec, EdgeSpec, JobPlan, OperatorSpec, TaskOptions
from holdfast.runtime.query import QueryOperator
from holdfast.state.store import StateBackend


@dataclass(frozen=True)
class PlannedJob:
    plan: JobPlan
    data_frames: tuple[DataFrameInput, ...]


def plan_job(graph: JobGraph, backend: StateBackend, options: TaskOptions) -> PlannedJob:
    chained = {edge for edge in graph.edges if _can_chain(graph, edge)}
    heads = [o for o in graph.operators if not any(edge in chained for edge in graph.inputs_of(o))]
    members = {head: _members(graph, head, chained) for head in heads}
    home = {operator: head for head, chain in members.items() for operator in chain}
    levels = _levels(graph, heads, home, chained)
    edge_ids = {edge: number for number, edge in enumerate(_in_order(graph, chained))}
    edges = tuple(_edge_spec(edge, number, levels[home[edge.target]]) for edge, number in edge_ids.items())
    chains = tuple(
        _chain_spec(graph, number, head, members[head], levels[head], edge_ids)
        for number, head in enumerate(h for h in heads if h.node.data_frame is None)
    )
    slots = max(operator.parallelism for operator in graph.operators if operator.node.data_frame is None)
    plan = JobPlan(graph.job_id, graph.name, slots, chains, edges, backend, options, graph.settings.program.parameters)
    return PlannedJob(plan, _data_frames(graph, edge_ids))


def _in_order(graph: JobGraph, chained: set[JobEdge]) -> list[JobEdge]:
    """The edges between chains as they are consumed: those that change broadcast state, then other broadcasts, then the
    rest as the program has them, the first of two connected streams before the second.
    """

    def priority(edge: JobEdge) -> tuple[bool, int]:
        return (False, -edge.connection.input_index) if is_broadcast(edge) else (True, 0)

    return sorted((edge for edge in graph.edges if edge not in chained), key=priority)


def _can_chain(graph: JobGraph, edge: JobEdge) -> bool:
    """Neighbours with one row path between them run in one task, by a call."""
    source, target = edge.source.node, edge.target.node
    if target.alignment is not None:
        return True  # the source stops in its task at the watermark behind it
    return (
        graph.settings.chaining
        and edge.partitioner.chainable
        and len(graph.inputs_of(edge.target)) == 1
        and edge.source.parallelism == edge.target.parallelism
        and source.chainable
        and target.chainable
        and not target.chain_head
        and target.factory is not QueryOperator
        and source.data_frame is None
    )


def _members(graph: JobGraph, head: JobOperator, chained: set[JobEdge]) -> list[JobOperator]:
    chain, position = [head], 0
    while position < len(chain):
        chain += [edge.target for edge in graph.outputs_of(chain[position]) if edge in chained]
        position += 1
    return chain


def _levels(
    graph: JobGraph, heads: list[JobOperator], home: Mapping[JobOperator, JobOperator], chained: set[JobEdge]
) -> dict[JobOperator, int]:
    """A chain runs one level behind the last of its inputs; sources are level 0. Heads come in topological order. A
    level has the rows of one query at most: that of another one is moved behind it.
    """
    levels: dict[JobOperator, int] = {}
    queried: set[int] = set()
    for head in heads:
        inputs = [levels[home[edge.source]] for edge in graph.inputs_of(head) if edge not in chained]
        level = 1 + max(inputs) if inputs else 0
        if head.node.factory is QueryOperator:
            level = next(number for number in count(level) if number not in queried)
            queried.add(level)
        levels[head] = level
    return levels


def _edge_spec(edge: JobEdge, number: int, target_level: int) -> EdgeSpec:
    return EdgeSpec(
        edge_id=number,
        source_operator=edge.source.operator_id,
        target_operator=edge.target.operator_id,
        partitioner=edge.partitioner,
        type_info=edge.connection.type_info,
        # The partitions of a DataFrame are one channel: they hold no state, and end together.
        source_parallelism=1 if edge.source.node.data_frame is not None else edge.source.parallelism,
        target_parallelism=edge.target.parallelism,
        target_level=target_level,
        input_index=edge.connection.input_index,
        event_time=edge.source.node.event_time,
        of_data_frame=edge.source.node.data_frame is not None,
        tag_id=edge.connection.tag_id,
        combine=edge.connection.combine,
    )


def _chain_spec(
    graph: JobGraph,
    number: int,
    head: JobOperator,
    members: list[JobOperator],
    level: int,
    edge_ids: Mapping[JobEdge, int],
) -> ChainSpec:
    links = {
        o.operator_id: tuple(e.target.operator_id for e in graph.outputs_of(o) if e not in edge_ids) for o in members
    }
    outputs = {o.operator_id: tuple(edge_ids[e] for e in graph.outputs_of(o) if e in edge_ids) for o in members}
    inputs = tuple(edge_ids[e] for e in graph.inputs_of(head))
    side_links = {
        e.target.operator_id: e.connection.tag_id
        for o in members
        for e in graph.outputs_of(o)
        if e not in edge_ids and e.connection.tag_id is not None
    }
    operators = tuple(_operator_spec(graph, o) for o in members)
    query = head.node.body if head.node.factory is QueryOperator else None
    return ChainSpec(number, level, head.parallelism, operators, links, outputs, inputs, side_links, query)


def _operator_spec(graph: JobGraph, operator: JobOperator) -> OperatorSpec:
    node = operator.node
    tags = [e.connection.tag for e in graph.outputs_of(operator) if e.connection.tag is not None]
    assert node.factory is not None
    return OperatorSpec(
        operator_id=operator.operator_id,
        name=operator.name,
        factory=node.factory,
        body=operator.body,
        parallelism=operator.parallelism,
        max_parallelism=operator.max_parallelism,
        output_type=node.output_type,
        key_type=node.key_type,
        keyed=node.keyed,
        key_migrations=node.key_migrations,
        event_time=node.event_time,
        uid=operator.uid,
        broadcast_states=node.broadcast_states,
        batch=graph.settings.batch,
        side_outputs={tag.tag_id: tag.type_info for tag in tags},
        generic_types=graph.settings.program.generic_types,
        watermark_interval_ms=graph.settings.program.watermark_interval_ms,
        alignment=node.alignment,
    )


def _data_frames(graph: JobGraph, edge_ids: Mapping[JobEdge, int]) -> tuple[DataFrameInput, ...]:
    sources = [o for o in graph.operators if o.node.data_frame is not None]
    return tuple(
        DataFrameInput(
            group,
            o.operator_id,
            o.name,
            o.node.data_frame,
            tuple(edge_ids[e] for e in graph.outputs_of(o)),
            o.node.event_time_column,
        )
        for group, o in enumerate(sources, start=1)
    )
