"""A declared type for every row and state, in a program that has disabled generic types."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.errors import ProgramError
from holdfast.graph.job_graph import JobGraph
from holdfast.graph.pickled_program import pickled_of_program
from holdfast.runtime.plan import JobPlan


def refuse_generic_types(graph: JobGraph, plan: JobPlan) -> None:
    """ProgramError that names all rows and states that would be pickled, as far as it is known before the job runs.
    State that functions declare when they are opened is refused there.
    """
    found = list(dict.fromkeys(_generic(graph, plan)))
    if found:
        listed = "\n".join(f"  - {each}" for each in found)
        raise ProgramError(
            f"Generic types are disabled, and the program has values that would be pickled:\n{listed}\nDeclare their "
            "types, or leave disable_generic_types() out."
        )


def _generic(graph: JobGraph, plan: JobPlan) -> Iterator[str]:
    for edge in graph.edges:
        if edge.connection.type_info.pickled:
            tag = "" if edge.connection.tag is None else f"side output '{edge.connection.tag.tag_id}' of "
            yield f"rows of {tag}'{edge.source.name}': give it output_type, or type_info where it is a source"
    for state in pickled_of_program(graph, plan):
        yield state.advice()
