"""What the job master makes of a job graph: its vertices, their subtasks, and how far each of them has come.

A vertex is a chain of operators, as in Flink. The graph is written by the thread that runs the job and read by anybody.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from holdfast.job.function_metrics import FunctionMetrics
from holdfast.runtime.epoch import Acknowledgement
from holdfast.runtime.operator import MIN_WATERMARK
from holdfast.runtime.plan import JobPlan


class ExecutionState(StrEnum):
    """The state of one subtask's present attempt."""

    CREATED = "CREATED"
    RUNNING = "RUNNING"
    FINISHED = "FINISHED"
    FAILED = "FAILED"
    CANCELED = "CANCELED"


@dataclass
class Execution:
    """One subtask in its present attempt. Rows are those since the attempt began."""

    subtask: int
    attempt: int = 0
    state: ExecutionState = ExecutionState.CREATED
    started: float | None = None
    ended: float | None = None
    executor: str = ""
    rows_in: int = 0
    rows_out: int = 0
    watermark: int = MIN_WATERMARK


@dataclass(frozen=True)
class ExecutionVertex:
    """One chain. Its id is that of its head."""

    vertex_id: str
    name: str
    level: int
    parallelism: int
    max_parallelism: int
    operator_ids: tuple[str, ...]
    #: Vertices whose rows it reads.
    inputs: tuple[str, ...]
    executions: tuple[Execution, ...] = field(default=())

    def count(self, state: ExecutionState) -> int:
        return sum(execution.state is state for execution in self.executions)


class ExecutionGraph:
    """All vertices of a job, in the order in which rows pass them."""

    def __init__(self, plan: JobPlan) -> None:
        #: Of operators, by their ids.
        self.names = {o.operator_id: o.name for c in plan.chains for o in c.operators}
        #: Metrics and accumulators of functions.
        self.metrics = FunctionMetrics()
        home = {o.operator_id: c.operators[0].operator_id for c in plan.chains for o in c.operators}
        sources = {edge.edge_id: home.get(edge.source_operator, edge.source_operator) for edge in plan.edges}
        self.vertices = tuple(
            ExecutionVertex(
                vertex_id=chain.operators[0].operator_id,
                name=" -> ".join(operator.name for operator in chain.operators),
                level=chain.level,
                parallelism=chain.parallelism,
                max_parallelism=chain.operators[0].max_parallelism,
                operator_ids=tuple(operator.operator_id for operator in chain.operators),
                inputs=tuple(sources[edge] for edge in chain.inputs),
                executions=tuple(Execution(subtask) for subtask in range(chain.parallelism)),
            )
            for chain in sorted(plan.chains, key=lambda chain: (chain.level, chain.chain_id))
        )

    def begin_attempt(self, attempt: int) -> None:
        """Every subtask starts anew."""
        now = time.time()
        for execution in self._executions():
            execution.attempt, execution.state = attempt, ExecutionState.RUNNING
            execution.started, execution.ended = now, None
            execution.rows_in = execution.rows_out = 0
            execution.watermark = MIN_WATERMARK
        self.metrics.begin_attempt()

    def take_in(self, acknowledgements: Sequence[Acknowledgement]) -> None:
        """What the tasks of an accepted epoch told. A vertex reads what its head reads and gives what its tail gives.
        """
        self.metrics.take_in(acknowledgements)
        told = {(p.operator_id, p.subtask): (p, a.executor) for a in acknowledgements for p in a.progress}
        for vertex in self.vertices:
            for execution in vertex.executions:
                head = told.get((vertex.operator_ids[0], execution.subtask))
                tail = told.get((vertex.operator_ids[-1], execution.subtask))
                if head is None or tail is None:
                    continue
                execution.rows_in += head[0].rows_in
                execution.rows_out += tail[0].rows_out
                execution.watermark, execution.executor = head[0].watermark, head[1]
                if head[0].ended and execution.state is ExecutionState.RUNNING:
                    self._end(execution, ExecutionState.FINISHED)

    def end(self, state: ExecutionState) -> None:
        """The attempt is over: what still runs ends in ``state``."""
        for execution in self._executions():
            if execution.state is ExecutionState.RUNNING:
                self._end(execution, state)

    def _executions(self) -> Iterable[Execution]:
        return (execution for vertex in self.vertices for execution in vertex.executions)

    @staticmethod
    def _end(execution: Execution, state: ExecutionState) -> None:
        execution.state, execution.ended = state, time.time()
