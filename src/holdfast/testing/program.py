"""The program around a function under test: a source, the function, a sink, planned as for Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.common.configuration import Configuration
from holdfast.connectors.discard import DiscardSink
from holdfast.datastream.data_stream import DataStream
from holdfast.datastream.stream_execution_environment import StreamExecutionEnvironment
from holdfast.errors import ProgramError
from holdfast.graph.job_graph import JobSettings, build_job_graph
from holdfast.graph.planner import plan_job
from holdfast.runtime.plan import EdgeSpec, JobPlan, OperatorSpec, TaskOptions
from holdfast.runtime.stream_operator import StreamOperator
from holdfast.state.backends import load_backend
from holdfast.testing.options import Setup
from holdfast.types.settings import (
    BackendSettings,
    CheckpointSettings,
    EpochSettings,
    NoRestartSettings,
    RecoverySettings,
)

#: Where the operator under test runs: behind the source, before the sink.
LEVEL = 1
UID = "operator-under-test"

_OPERATIONS = {
    "map": "map",
    "flat_map": "flat_map",
    "filter": "filter",
    "reduce": "reduce",
    "process": "process_element",
}
_WITHOUT_OUTPUT_TYPE = ("filter", "reduce")

KeyBy = Callable[[DataStream], DataStream]


@dataclass(frozen=True)
class TestProgram:
    """The plan, and where its only operator sits in it."""

    #: Not a class of tests, whatever pytest makes of its name.
    __test__ = False

    plan: JobPlan
    operator: OperatorSpec
    #: The edge of the rows; behind it that of broadcast elements, where there is one.
    inputs: tuple[EdgeSpec, ...]
    output: EdgeSpec
    #: By tag.
    side_outputs: Mapping[str, EdgeSpec]


def build_program(function: Any, key_by: KeyBy | None, setup: Setup, job_id: str, directory: str) -> TestProgram:
    """``key_by`` makes the stream a keyed one."""
    environment = StreamExecutionEnvironment(Configuration())
    stream = environment.from_collection([], setup.input_type)
    if key_by is not None:
        stream = key_by(stream)
    result = _apply(function, stream, environment, setup)
    result.uid(UID).disable_chaining().set_parallelism(setup.parallelism).set_max_parallelism(setup.max_parallelism)
    for tag in (None, *setup.side_outputs):
        stream = result if tag is None else result.get_side_output(tag)
        stream.sink_to(DiscardSink()).set_parallelism(setup.parallelism)
    graph = environment.get_stream_graph()
    for node in graph.nodes:
        node.event_time = setup.event_time
    settings = JobSettings(
        CheckpointSettings(),
        NoRestartSettings(),
        BackendSettings(),
        EpochSettings(),
        RecoverySettings(),
        parameters=setup.parameters,
    )
    job = build_job_graph(graph, job_id, "test", settings, parallelism=1)
    plan = plan_job(job, load_backend(setup.backend, {}), TaskOptions(local_dir=directory)).plan
    (chain,) = (chain for chain in plan.chains if chain.level == LEVEL)
    operator = chain.operators[0]
    edges = {edge.edge_id: edge for edge in plan.edges}
    outputs = {edges[number].tag_id: edges[number] for number in chain.outputs[operator.operator_id]}
    output = outputs.pop(None)
    inputs = tuple(sorted((edges[edge] for edge in chain.inputs), key=lambda edge: edge.input_index))
    return TestProgram(plan, operator, inputs, output, {tag: edge for tag, edge in outputs.items() if tag is not None})


def _apply(function: Any, stream: DataStream, environment: StreamExecutionEnvironment, setup: Setup) -> DataStream:
    if setup.broadcast_states:
        first, *others = setup.broadcast_states
        broadcast = environment.from_collection([], setup.broadcast_type).broadcast(first, *others)
        return stream.connect(broadcast).process(function, setup.output_type)
    if isinstance(function, StreamOperator):
        return stream.transform("Operator", setup.output_type, function)
    operation = setup.operation or _operation_of(function)
    if callable(operation):
        made: DataStream = operation(stream, function)
        return made
    arguments = [function] if operation in _WITHOUT_OUTPUT_TYPE else [function, setup.output_type]
    result: DataStream = getattr(stream, operation)(*arguments)
    return result


def _operation_of(function: Any) -> str:
    for operation, method in _OPERATIONS.items():
        if callable(getattr(function, method, None)):
            return operation
    raise ProgramError(
        f"{function!r} has none of the methods {', '.join(_OPERATIONS.values())}. "
        f"Say what a plain function is for with operation=..., one of {', '.join(_OPERATIONS)}."
    )
