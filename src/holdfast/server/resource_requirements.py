"""What a request about the resources of a job asks for: one parallelism. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.job.execution_graph import ExecutionVertex
from holdfast.server.models_operation import ParallelismBounds, VertexRequirements
from holdfast.server.requests import RestError

Requirements = Mapping[str, VertexRequirements]


def present_requirements(vertices: Sequence[ExecutionVertex]) -> dict[str, VertexRequirements]:
    return {vertex.vertex_id: VertexRequirements(ParallelismBounds(vertex.parallelism)) for vertex in vertices}


def wanted_parallelism(wanted: Requirements, vertices: Sequence[ExecutionVertex], present: int) -> int:
    """The upper bound of all vertices that have the parallelism of the job. Slots are shared by all operators, so there
    is one for all of them; a vertex whose operators have a parallelism of their own keeps that.
    """
    _check_complete(wanted, vertices)
    _check_bounds(wanted)
    following = [vertex for vertex in vertices if vertex.parallelism == present]
    bounds = {wanted[vertex.vertex_id].parallelism.upper_bound for vertex in following}
    if len(bounds) != 1:
        asked = ", ".join(f"{v.vertex_id} ('{v.name}'): {_upper(wanted, v)}" for v in following)
        raise RestError(
            400,
            f"The upper bounds of the vertices are different ({asked}); expected one for all. Slots are shared by all "
            "operators of a job, which has one parallelism",
        )
    (parallelism,) = bounds
    for vertex in vertices:
        if vertex not in following and _upper(wanted, vertex) not in (vertex.parallelism, parallelism):
            raise RestError(
                400,
                f"The upper bound of vertex {vertex.vertex_id} ('{vertex.name}') is {_upper(wanted, vertex)}; expected "
                f"{vertex.parallelism}, which the program or its source has set for it and which it keeps",
            )
    return parallelism


def _upper(wanted: Requirements, vertex: ExecutionVertex) -> int:
    return wanted[vertex.vertex_id].parallelism.upper_bound


def _check_complete(wanted: Requirements, vertices: Sequence[ExecutionVertex]) -> None:
    known = [vertex.vertex_id for vertex in vertices]
    if set(wanted) != set(known):
        raise RestError(
            400,
            f"The request is about the vertices {', '.join(wanted) or 'none'}; expected all of the job and no other: "
            f"{', '.join(known)}",
        )


def _check_bounds(wanted: Requirements) -> None:
    for vertex_id, requirements in wanted.items():
        bounds = requirements.parallelism
        if bounds.lower_bound > bounds.upper_bound:
            raise RestError(
                400,
                f"The lower bound of vertex {vertex_id} is {bounds.lower_bound}, and its upper bound "
                f"{bounds.upper_bound}; expected a lower bound that is not above the upper one",
            )
