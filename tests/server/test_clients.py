"""What others speak with the server: an unchanged client of Flink, Prometheus, and a tester of descriptions."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
import schemathesis
from flink_rest_client import FlinkRestClient
from flink_rest_client.common import RestException
from hypothesis import HealthCheck, given, settings, strategies
from schemathesis import checks
from schemathesis.specs.openapi import checks as openapi_checks

from holdfast.server.openapi import describe
from holdfast.server.reference import render
from holdfast.server.resources import RESOURCES
from tests.kit.properties import examples
from tests.server.serving import JOB, serving

PROJECT = Path(__file__).resolve().parents[2]
CHECKS = [
    checks.not_a_server_error,
    openapi_checks.status_code_conformance,
    openapi_checks.content_type_conformance,
    openapi_checks.response_schema_conformance,
]


@pytest.fixture
def flink(served, tmp_path, monkeypatch):
    """The client as it comes from PyPI. It knows of no token: it finds one in ``.netrc``."""
    netrc = tmp_path / "netrc"
    netrc.write_text(f"machine 127.0.0.1 login holdfast password {served.server.token}\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("NO_PROXY", "*")
    return FlinkRestClient.get(host="127.0.0.1", port=served.port)


def _await(served, trigger):
    return served.wait(lambda: (got := trigger.status)["status"]["id"] == "COMPLETED" and got)["operation"]


def test_flinks_client_reads(served, flink):
    served.await_checkpoints(2)
    assert flink.overview()["jobs-running"] == 1
    assert "flink-version" in flink.config()
    assert flink.jobs.all() == [{"id": JOB, "status": "RUNNING"}]
    assert flink.jobs.overview()[0]["name"] == "counting"
    assert flink.jobs.get(JOB)["state"] == "RUNNING"
    assert len(flink.jobs.get_plan(JOB)["nodes"]) == 2
    assert flink.jobs.get_exceptions(JOB)["exceptionHistory"]["entries"] == []
    assert flink.jobs.get_metrics(JOB, ["numRestarts"]) == {"numRestarts": "0"}
    assert flink.jobs.get_checkpointing_configuration(JOB)["mode"] == "exactly_once"
    vertex = flink.jobs.get_vertex(JOB, flink.jobs.get_vertex_ids(JOB)[1])
    assert len(vertex.details()["subtasks"]) == 2
    assert len(flink.jobs.get_checkpoint_ids(JOB)) >= 2
    number = flink.jobs.get_checkpoints(JOB)["latest"]["completed"]["id"]
    details = flink.jobs.get_checkpoint_details(JOB, number, show_subtasks=True)
    assert details["status"] == "COMPLETED"
    assert set(details["subtasks"]) == set(flink.jobs.get_vertex_ids(JOB))


def test_flinks_client_takes_a_savepoint_and_stops(served, flink, tmp_path):
    served.await_checkpoints()
    trigger = flink.jobs.create_savepoint(JOB, str(tmp_path / "savepoints"))
    location = _await(served, trigger)["location"]
    assert (Path(location) / "_metadata").exists()
    stopped = flink.jobs.stop(JOB, str(tmp_path / "savepoints"))
    assert _await(served, stopped)["location"] != location
    served.wait(lambda: flink.jobs.get(JOB)["state"] == "FINISHED")
    with pytest.raises(RestException, match="409"):
        flink.jobs.terminate(JOB)


def test_flinks_client_cancels(served, flink):
    assert flink.jobs.terminate(JOB)
    served.wait(lambda: flink.jobs.get(JOB)["state"] == "CANCELED")
    with pytest.raises(RestException, match="404"):
        flink.jobs.get("none")


def test_prometheus(served):
    served.await_checkpoints(2)
    answer = served.call("GET", "/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    told = dict(re.findall(r'^(flink_\w+)\{[^}]*job_id="' + JOB + r'"[^}]*\} (\S+)$', answer.body, re.MULTILINE))
    assert float(told["flink_jobmanager_job_numberOfCompletedCheckpoints"]) >= 2
    assert float(told["flink_jobmanager_job_numRestarts"]) == 0
    assert "flink_taskmanager_job_task_numRecordsIn" in told
    assert "flink_jobmanager_numRunningJobs 1.0" in answer.body


def test_the_description_tells_every_resource(served):
    described = served.get("/openapi.json")
    assert described == msgspec.to_builtins(describe())
    assert {(method.upper(), path) for path, ways in described["paths"].items() for method in ways} == {
        (resource.method, resource.path) for resource in RESOURCES
    }
    ids = [way["operationId"] for ways in described["paths"].values() for way in ways.values()]
    assert len(ids) == len(set(ids))


def test_the_reference_page_is_that_of_the_resources():
    page = PROJECT / "docs" / "reference" / "rest.md"
    assert page.read_text() == render(), "run 'make docs'"


@pytest.mark.slow
def test_no_request_of_the_description_is_a_server_error(in_process, tmp_path):
    """Made-up requests by the description, right and wrong ones, to a job that runs and to none."""
    with serving(tmp_path) as served:
        served.await_checkpoints()
        headers = {"Authorization": f"Bearer {served.server.token}"}
        described = schemathesis.openapi.from_url(f"{served.server.url}/openapi.json", headers=headers)
        for result in described.get_all_operations():
            operation = result.ok()
            # Cancelling and stopping would end the job that the others are about.
            job_id = "ended" if operation.method.upper() == "PATCH" or operation.path.endswith("/stop") else JOB
            _try(operation, headers, job_id)
        assert served.get(f"/jobs/{JOB}/status") == {"status": "RUNNING"}


def _try(operation, headers, job_id):
    @given(case=operation.as_strategy(), known=strategies.booleans())
    @settings(max_examples=examples(15), deadline=None, database=None, suppress_health_check=list(HealthCheck))
    def one(case, known):
        if known and "job_id" in case.path_parameters:
            case.path_parameters["job_id"] = job_id
        if isinstance(case.body, dict):
            case.body.pop("cancel-job", None)
        case.validate_response(case.call(headers=headers), checks=CHECKS)

    one()
