"""What the coordinator, and the rules of restoring, know of a program."""

from __future__ import annotations

from holdfast.checkpoint.job_facts import JobFacts, JobOperator
from holdfast.graph.job_graph import JobGraph
from holdfast.state.backends import load_backend
from holdfast.state.keys import KEY_HASH


def job_facts(graph: JobGraph) -> JobFacts:
    operators = tuple(
        JobOperator(
            operator_id=o.operator_id,
            name=o.name,
            parallelism=o.parallelism,
            max_parallelism=o.max_parallelism,
            uid=o.uid,
            uid_hash=o.node.uid_hash,
            max_parallelism_explicit=o.max_parallelism_explicit,
            keyed=o.node.keyed,
            is_sink=o.node.is_sink,
            inputs=tuple(edge.source.operator_id for edge in graph.inputs_of(o)),
        )
        for o in graph.operators
    )
    backend = graph.settings.backend
    return JobFacts(graph.job_id, graph.name, KEY_HASH, operators, load_backend(backend.name, backend.options).name)
