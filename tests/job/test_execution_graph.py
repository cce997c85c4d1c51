"""The execution graph: vertices are chains, and subtasks go through their states."""

from __future__ import annotations

from holdfast.graph.planner import plan_job
from holdfast.job.execution_graph import ExecutionGraph, ExecutionState
from holdfast.runtime.epoch import Acknowledgement, OperatorProgress
from holdfast.runtime.plan import JobPlan, TaskOptions
from holdfast.state.heap.backend import HeapBackend
from tests.graph.programs import Program


def planned_word_count() -> JobPlan:
    program = Program()
    program.sink(program.keyed(program.map(program.source())))
    return plan_job(program.build(), HeapBackend.from_options({}), TaskOptions()).plan


def told(plan: JobPlan, ended: bool) -> list[Acknowledgement]:
    return [
        Acknowledgement(
            0,
            chain.level,
            slot,
            1,
            "n",
            {},
            progress=tuple(OperatorProgress(o.operator_id, slot, 10, 20, 5, ended) for o in chain.operators),
            executor="host/1",
        )
        for chain in plan.chains
        for slot in range(chain.parallelism)
    ]


def test_vertices_are_chains_with_their_inputs() -> None:
    plan = planned_word_count()
    graph = ExecutionGraph(plan)
    assert [vertex.level for vertex in graph.vertices] == sorted(chain.level for chain in plan.chains)
    assert graph.vertices[0].inputs == ()
    assert graph.vertices[-1].inputs == (graph.vertices[0].vertex_id,)
    assert {e.state for v in graph.vertices for e in v.executions} == {ExecutionState.CREATED}


def test_an_attempt_counts_its_rows_and_ends() -> None:
    plan = planned_word_count()
    graph = ExecutionGraph(plan)
    graph.begin_attempt(3)
    graph.take_in(told(plan, ended=False))
    graph.take_in(told(plan, ended=False))
    execution = graph.vertices[0].executions[0]
    assert (execution.attempt, execution.state, execution.rows_in, execution.rows_out) == (
        3,
        ExecutionState.RUNNING,
        20,
        40,
    )
    assert (execution.executor, execution.watermark) == ("host/1", 5)
    graph.take_in(told(plan, ended=True))
    assert graph.vertices[0].count(ExecutionState.FINISHED) == graph.vertices[0].parallelism
    graph.end(ExecutionState.FAILED)
    assert graph.vertices[0].count(ExecutionState.FAILED) == 0, "what has finished does not fail"


def test_a_failed_attempt_is_followed_by_a_new_one() -> None:
    graph = ExecutionGraph(planned_word_count())
    graph.begin_attempt(1)
    graph.end(ExecutionState.FAILED)
    assert graph.vertices[0].executions[0].state is ExecutionState.FAILED
    graph.begin_attempt(2)
    execution = graph.vertices[0].executions[0]
    assert (execution.attempt, execution.state, execution.rows_in, execution.ended) == (
        2,
        ExecutionState.RUNNING,
        0,
        None,
    )
