"""Small programs as graphs, without an environment around them."""

from __future__ import annotations

from typing import Any

from holdfast.connectors.collection import CollectionSource
from holdfast.connectors.discard import DiscardSink
from holdfast.graph.job_graph import JobGraph, JobSettings, build_job_graph
from holdfast.graph.stream_graph import Connection, KeyBy, Node, StreamGraph
from holdfast.runtime.endpoints import SinkOperator, SourceOperator
from holdfast.runtime.keyed import KeyedMapOperator
from holdfast.runtime.partitioners import Partitioner
from holdfast.runtime.stateless import MapOperator
from holdfast.types.settings import (
    BackendSettings,
    CheckpointSettings,
    EpochSettings,
    NoRestartSettings,
    RecoverySettings,
)
from holdfast.types.typeinfo import Types


def settings(checkpoint: CheckpointSettings | None = None, **changes: Any) -> JobSettings:
    checkpoint = checkpoint or CheckpointSettings()
    return JobSettings(
        checkpoint, NoRestartSettings(), BackendSettings(), EpochSettings(), RecoverySettings(), **changes
    )


def identity(value: Any) -> Any:
    return value


class Program:
    """Adds nodes in the order of the calls."""

    def __init__(self) -> None:
        self.graph = StreamGraph()

    def source(self, name: str = "Source") -> Node:
        return self.graph.add(name, SourceOperator, CollectionSource([1, 2]), Types.LONG(), [])

    def map(
        self, *inputs: Node, name: str = "Map", partitioner: Partitioner | None = None, body: Any = identity
    ) -> Node:
        connections = [Connection(node, partitioner) for node in inputs]
        return self.graph.add(name, MapOperator, body, Types.LONG(), connections)

    def keyed(self, source: Node, name: str = "Keyed", selector: Any = identity) -> Node:
        connection = Connection(source, key_by=KeyBy(Types.LONG(), selector=selector))
        return self.graph.add(name, KeyedMapOperator, identity, Types.LONG(), [connection])

    def sink(self, source: Node, name: str = "Sink", partitioner: Partitioner | None = None) -> Node:
        node = self.graph.add(name, SinkOperator, DiscardSink(), Types.LONG(), [Connection(source, partitioner)])
        node.is_sink = True
        return node

    def build(self, parallelism: int = 2, adopted: dict[str, int] | None = None, **changes: Any) -> JobGraph:
        return build_job_graph(self.graph, "job", "a job", settings(**changes), parallelism, adopted)


def named(graph: JobGraph, name: str) -> Any:
    return next(operator for operator in graph.operators if operator.name == name)
