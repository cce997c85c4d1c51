"""States of a program that will be pickled, as far as that is known before it runs.

What functions declare when they are opened is not: the job's first checkpoint tells of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.graph.job_graph import JobGraph
from holdfast.runtime.declarations import Occasion, declarations_of
from holdfast.runtime.plan import JobPlan, OperatorSpec
from holdfast.runtime.source import Source, positions_of
from holdfast.state.descriptors import StateDescriptor
from holdfast.state.handles import DistributionMode, StateMeta
from holdfast.state.operator_state_file import Types
from holdfast.state.pickled_states import PickledState, StateOwner
from holdfast.state.snapshot_files import InlineSnapshotReader


def pickled_of_program(graph: JobGraph, plan: JobPlan) -> Iterator[PickledState]:
    """Positions of sources, broadcast states, and what operators such as windows keep themselves."""
    for operator in graph.operators:
        if isinstance(operator.node.body, Source):
            owner = StateOwner(operator.name, operator.uid)
            yield from owner.pickled_lists([_listed(positions_of(operator.node.body), DistributionMode.UNION)])
    for spec in plan.operators():
        owner = StateOwner(spec.name, spec.uid)
        yield from owner.pickled_lists(_listed(one, DistributionMode.BROADCAST) for one in spec.broadcast_states)
        if spec.keyed:
            yield from owner.pickled_keyed(meta for meta, _ in _declared(spec, plan))


def _declared(spec: OperatorSpec, plan: JobPlan) -> list[tuple[StateMeta, StateDescriptor | None]]:
    occasion = Occasion(plan, checkpoint_id=0, open_functions=False)
    return list(declarations_of(spec, None, InlineSnapshotReader(), occasion).keyed.values())


def _listed(descriptor: StateDescriptor, mode: DistributionMode) -> tuple[str, DistributionMode, Types]:
    types = {role: serializer.snapshot() for role, serializer in descriptor.serializers().items()}
    return descriptor.get_name(), mode, types
