"""Which parallelism a request about the resources of a job asks for."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.cli.verbs_rescale import requirements_of
from holdfast.job.execution_graph import ExecutionVertex
from holdfast.server.models_operation import VertexRequirements
from holdfast.server.requests import RestError
from holdfast.server.resource_requirements import present_requirements, wanted_parallelism
from tests.server.serving import JOB

SLOTS = 4


def _vertex(vertex_id: str, parallelism: int = SLOTS) -> ExecutionVertex:
    return ExecutionVertex(vertex_id, f"name of {vertex_id}", 0, parallelism, 128, (vertex_id,), ())


VERTICES = [_vertex("source", 1), _vertex("map"), _vertex("sink")]


def _wanted(**bounds: int) -> dict[str, VertexRequirements]:
    told = {name: {"parallelism": {"upperBound": upper}} for name, upper in bounds.items()}
    return msgspec.convert(told, dict[str, VertexRequirements])


def _ask(wanted: dict[str, VertexRequirements]) -> int:
    return wanted_parallelism(wanted, VERTICES, SLOTS)


def test_what_is_told_can_be_sent_back():
    assert _ask(present_requirements(VERTICES)) == SLOTS


def test_a_vertex_of_its_own_parallelism_may_be_left_or_raised_with_the_others():
    assert _ask(_wanted(source=1, map=6, sink=6)) == 6
    assert _ask(_wanted(source=6, map=6, sink=6)) == 6
    asked = requirements_of([{"id": vertex.vertex_id} for vertex in VERTICES], 2)
    assert _ask(msgspec.convert(asked, dict[str, VertexRequirements])) == 2


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (_wanted(source=1, map=6, sink=5), r"map \('name of map'\): 6, sink .*: 5\); expected one for all"),
        (_wanted(source=2, map=6, sink=6), "upper bound of vertex source .* is 2; expected 1"),
        (_wanted(map=6, sink=6), "expected all of the job and no other: source, map, sink"),
        (_wanted(source=1, map=6, sink=6, other=6), "expected all of the job and no other"),
        ({}, "vertices none"),
    ],
)
def test_one_parallelism_for_all(wanted, message):
    with pytest.raises(RestError, match=message) as refused:
        _ask(wanted)
    assert refused.value.status == 400


def test_bounds_that_contradict_each_other():
    told = {vertex.vertex_id: {"parallelism": {"lowerBound": 7, "upperBound": 6}} for vertex in VERTICES}
    with pytest.raises(RestError, match="lower bound of vertex source is 7, and its upper bound 6"):
        _ask(msgspec.convert(told, dict[str, VertexRequirements]))


def test_the_resource_of_a_running_job(served):
    path = f"/jobs/{JOB}/resource-requirements"
    told = served.get(path)
    vertices = served.get(f"/jobs/{JOB}")["vertices"]
    expected = {v["id"]: {"parallelism": {"lowerBound": 1, "upperBound": v["parallelism"]}} for v in vertices}
    assert told == expected
    # What the job has already needs no change.
    answer = served.call("PUT", path, told)
    assert answer.status == 200
    done = served.await_operation(f"/jobs/{JOB}/rescaling/{answer.body['request-id']}")
    assert done == {"parallelism": 2}
    for body in (None, {}, [], {"x": 1}, {"x": {"parallelism": {"upperBound": 0}}}, requirements_of(vertices, 1 << 20)):
        assert served.call("PUT", path, body).status == 400, body
    mixed = {vertex_id: {"parallelism": {"upperBound": 3 + place}} for place, vertex_id in enumerate(told)}
    assert "('script') is 3; expected 1" in served.call("PUT", path, mixed).error
    assert served.call("PUT", "/jobs/unknown/resource-requirements", told).status == 404
    assert served.call("GET", f"/jobs/{JOB}/rescaling/unknown").status == 404
    served.end()
    assert served.call("PUT", path, told).status == 409
