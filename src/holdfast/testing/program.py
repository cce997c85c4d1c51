"""The program around an operator under test: sources, the operator, sinks, planned as for Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from holdfast.common.configuration import Configuration
from holdfast.connectors.discard import DiscardSink
from holdfast.datastream.data_stream import DataStream
from holdfast.datastream.stream_execution_environment import StreamExecutionEnvironment
from holdfast.graph.job_graph import JobSettings, build_job_graph
from holdfast.graph.planner import plan_job
from holdfast.runtime.plan import EdgeSpec, JobPlan, OperatorSpec, TaskOptions
from holdfast.state.backends import load_backend
from holdfast.testing.operator_places import AsSource, Place
from holdfast.testing.options import Setup
from holdfast.types.settings import (
    BackendSettings,
    CheckpointSettings,
    EpochSettings,
    NoRestartSettings,
    ProgramSettings,
    RecoverySettings,
)

UID = "operator-under-test"


@dataclass(frozen=True)
class TestProgram:
    """The plan, and where its only operator sits in it."""

    #: Not a class of tests, whatever pytest makes of its name.
    __test__ = False

    plan: JobPlan
    operator: OperatorSpec
    #: Of the tasks that run it: 0 for a source.
    level: int
    #: The edge of the rows; behind it that of the second input, where there is one.
    inputs: tuple[EdgeSpec, ...]
    #: By tag, None being that of the main output. A sink has none.
    outputs: Mapping[str | None, EdgeSpec]


def build_program(place: Place, setup: Setup, job_id: str, directory: str) -> TestProgram:
    environment = StreamExecutionEnvironment(Configuration())
    environment.row_path = setup.row_path
    result = place.build(environment, setup)
    result.uid(UID).disable_chaining().set_parallelism(setup.parallelism)
    if isinstance(result, DataStream):
        for tag in (None, *setup.side_outputs):
            stream = result if tag is None else result.get_side_output(tag)
            stream.sink_to(DiscardSink()).set_parallelism(setup.parallelism)
    graph = environment.get_stream_graph()
    for node in graph.nodes:
        # A source gives rows; what gives them event times stands behind it.
        node.event_time = setup.event_time and not isinstance(place, AsSource)
    settings = JobSettings(
        CheckpointSettings(),
        NoRestartSettings(),
        BackendSettings(),
        EpochSettings(),
        RecoverySettings(),
        max_parallelism=setup.max_parallelism,
        program=ProgramSettings(parameters=setup.parameters),
    )
    job = build_job_graph(graph, job_id, "test", settings, parallelism=1)
    plan = plan_job(job, load_backend(setup.backend, {}), TaskOptions(local_dir=directory)).plan
    (chain,) = (chain for chain in plan.chains if chain.operators[0].uid == UID)
    operator = chain.operators[0]
    edges = {edge.edge_id: edge for edge in plan.edges}
    outputs = {edges[number].tag_id: edges[number] for number in chain.outputs[operator.operator_id]}
    inputs = tuple(sorted((edges[edge] for edge in chain.inputs), key=lambda edge: edge.input_index))
    return TestProgram(plan, operator, chain.level, inputs, outputs)
