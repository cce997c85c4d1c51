"""The answers about a job, field by field, of a job that runs."""

from __future__ import annotations

import time

import pytest

from tests.server.serving import JOB, serving

JOB_STATUSES = {
    "INITIALIZING", "CREATED", "RUNNING", "FAILING", "FAILED", "CANCELLING", "CANCELED", "FINISHED", "RESTARTING",
    "SUSPENDED", "RECONCILING",
}
EXECUTION_STATES = {
    "CREATED", "SCHEDULED", "DEPLOYING", "RUNNING", "FINISHED", "CANCELING", "CANCELED", "FAILED", "RECONCILING",
    "INITIALIZING",
}


def test_dashboard_configuration(served):
    answer = served.get("/config")
    assert set(answer) == {
        "refresh-interval", "timezone-name", "timezone-offset", "flink-version", "flink-revision", "features",
    }
    assert set(answer["features"]) == {"web-submit", "web-cancel", "web-rescale", "web-history"}
    assert answer["refresh-interval"] == 3000


def test_overview_counts_jobs(served):
    answer = served.get("/overview")
    assert set(answer) == {
        "taskmanagers", "slots-total", "slots-available", "jobs-running", "jobs-finished", "jobs-cancelled",
        "jobs-failed", "flink-version", "flink-commit",
    }
    assert (answer["jobs-running"], answer["jobs-cancelled"]) == (1, 0)
    served.end()
    answer = served.get("/overview")
    assert (answer["jobs-running"], answer["jobs-cancelled"]) == (0, 1)


@pytest.mark.parametrize("prefix", ["", "/v1"])
def test_jobs_with_their_states(served, prefix):
    served.await_checkpoints()
    assert served.get(f"{prefix}/jobs") == {"jobs": [{"id": JOB, "status": "RUNNING"}]}
    assert served.get(f"{prefix}/jobs/{JOB}/status") == {"status": "RUNNING"}


def test_jobs_overview(served):
    served.await_checkpoints()
    (job,) = served.get("/jobs/overview")["jobs"]
    assert set(job) == {
        "jid", "name", "jobType", "schedulerType", "start-time", "end-time", "duration", "state", "last-modification",
        "tasks", "pending-operators",
    }
    assert (job["jid"], job["name"], job["state"], job["end-time"]) == (JOB, "counting", "RUNNING", -1)
    assert abs(job["start-time"] + job["duration"] - 1000 * time.time()) < 60_000
    assert set(job["tasks"]) == {"total"} | {state.lower() for state in EXECUTION_STATES}
    assert job["tasks"]["total"] == job["tasks"]["running"] == 3


def test_details_of_a_job(served):
    served.await_checkpoints()
    job = served.get(f"/jobs/{JOB}")
    assert set(job) == {
        "jid", "application-id", "name", "isStoppable", "state", "job-type", "schedulerType", "start-time", "end-time",
        "duration", "maxParallelism", "now", "timestamps", "vertices", "status-counts", "plan", "pending-operators",
    }
    assert job["application-id"] == "local-in-process"
    assert set(job["timestamps"]) == JOB_STATUSES
    assert 0 < job["timestamps"]["CREATED"] <= job["timestamps"]["RUNNING"]
    assert job["timestamps"]["FAILED"] == 0
    assert set(job["status-counts"]) == EXECUTION_STATES
    assert job["status-counts"]["RUNNING"] == len(job["vertices"]) == 2


def test_vertices_and_plan_of_a_job(served):
    served.await_checkpoints()
    job = served.get(f"/jobs/{JOB}")
    source, count = job["vertices"]
    assert set(source) == {
        "id", "slotSharingGroupId", "name", "maxParallelism", "parallelism", "status", "start-time", "end-time",
        "duration", "tasks", "metrics",
    }
    assert set(source["tasks"]) == EXECUTION_STATES
    assert set(source["metrics"]) == {
        "read-bytes", "read-bytes-complete", "write-bytes", "write-bytes-complete", "read-records",
        "read-records-complete", "write-records", "write-records-complete", "accumulated-backpressured-time",
        "accumulated-idle-time", "accumulated-busy-time",
    }
    assert count["parallelism"] == 2
    plan = job["plan"]
    assert (plan["jid"], plan["name"], plan["type"]) == (JOB, "counting", "STREAMING")
    assert [node["id"] for node in plan["nodes"]] == [source["id"], count["id"]]
    assert set(plan["nodes"][1]) == {
        "id", "operator", "parallelism", "operator_strategy", "description", "optimizer_properties", "inputs",
    }
    assert plan["nodes"][1]["inputs"] == [
        {
            "id": source["id"], "num": 0, "exchange": "pipelined_bounded", "ship_strategy": "HASH",
            "local_strategy": "", "caching": "",
        }
    ]
    assert served.get(f"/jobs/{JOB}/plan") == {"plan": plan}


def test_a_vertex_has_its_subtasks(served):
    vertex = served.get(f"/jobs/{JOB}")["vertices"][1]["id"]
    served.wait(lambda: served.get(f"/jobs/{JOB}/vertices/{vertex}")["subtasks"][0]["metrics"]["read-records"])
    answer = served.get(f"/jobs/{JOB}/vertices/{vertex}")
    assert [subtask["subtask"] for subtask in answer["subtasks"]] == [0, 1]
    assert answer["subtasks"][0]["watermark"] is None
    assert served.call("GET", f"/jobs/{JOB}/vertices/none").status == 404


def test_configuration_hides_secrets(in_process, tmp_path):
    secrets = {"spark.hadoop.fs.s3a.secret.key": "hush", "my.password": "hush", "my.colour": "blue"}
    with serving(tmp_path, **secrets) as served:
        answer = served.get(f"/jobs/{JOB}/config")
    shown = answer["execution-config"]["user-config"]
    assert (answer["jid"], answer["execution-config"]["restart-strategy"]) == (JOB, "fixed-delay")
    assert (shown["my.password"], shown["spark.hadoop.fs.s3a.secret.key"]) == ("******", "******")
    assert shown["my.colour"] == "blue"


def test_exceptions_the_newest_first(in_process, tmp_path):
    def fail(spec):
        if spec.attempt < 3:
            raise ValueError(f"fault {spec.attempt}")

    in_process.before_epoch = fail
    with serving(tmp_path) as served:
        served.await_checkpoints()
        history = served.get(f"/jobs/{JOB}/exceptions")["exceptionHistory"]
        assert [("fault 2" in e["stacktrace"], "fault 1" in e["stacktrace"]) for e in history["entries"]] == [
            (True, False),
            (False, True),
        ]
        assert set(history["entries"][0]) == {
            "exceptionName", "stacktrace", "timestamp", "failureLabels", "taskName", "endpoint", "taskManagerId",
            "concurrentExceptions",
        }
        assert history["truncated"] is False
        one = served.get(f"/jobs/{JOB}/exceptions?maxExceptions=1")["exceptionHistory"]
        assert (len(one["entries"]), one["truncated"]) == (1, True)
        assert served.get(f"/jobs/{JOB}/exceptions?failureLabelFilter=a:b")["exceptionHistory"]["entries"] == []
        assert served.call("GET", f"/jobs/{JOB}/exceptions?maxExceptions=x").status == 400
        assert served.call("GET", f"/jobs/{JOB}/exceptions?failureLabelFilter=x").status == 400
        (restarts,) = served.get(f"/jobs/{JOB}/metrics?get=numRestarts")
        assert restarts == {"id": "numRestarts", "value": "2"}


def test_metrics_are_names_or_values(served):
    served.await_checkpoints(2)
    names = served.get(f"/jobs/{JOB}/metrics")
    assert {
        "numRestarts", "uptime", "downtime", "totalNumberOfCheckpoints", "numberOfCompletedCheckpoints",
        "numberOfFailedCheckpoints", "numberOfInProgressCheckpoints", "lastCheckpointDuration", "lastCheckpointSize",
        "lastCheckpointFullSize", "lastCompletedCheckpointId", "lastCheckpointExternalPath",
        "lastCheckpointRestoreTimestamp", "lastCheckpointCompletedTimestamp", "lastCheckpointProcessedData",
        "lastCheckpointPersistedData", "numberOfMigratedEntries",
    } == {metric["id"] for metric in names}
    assert all(set(metric) == {"id"} for metric in names)
    told = served.get(f"/jobs/{JOB}/metrics?get=numberOfCompletedCheckpoints,lastCheckpointExternalPath,nonsense")
    assert [metric["id"] for metric in told] == ["numberOfCompletedCheckpoints", "lastCheckpointExternalPath"]
    assert int(told[0]["value"]) >= 2
    assert f"{JOB}/chk-" in told[1]["value"]


def test_cancelling(served):
    assert served.call("PATCH", f"/jobs/{JOB}?mode=stop").status == 308
    assert served.call("PATCH", f"/jobs/{JOB}?mode=other").status == 400
    assert served.call("PATCH", "/jobs/none").status == 404
    answer = served.call("PATCH", f"/jobs/{JOB}")
    assert (answer.status, answer.body) == (202, {})
    served.wait(lambda: served.get(f"/jobs/{JOB}/status")["status"] == "CANCELED")
    assert served.call("PATCH", f"/jobs/{JOB}?mode=cancel").status == 202


def test_a_job_that_finished_cannot_be_cancelled(in_process, tmp_path):
    with serving(tmp_path, ends=True) as served:
        served.client.get_job_execution_result().result(20)
        answer = served.call("PATCH", f"/jobs/{JOB}")
        assert (answer.status, "FINISHED" in answer.error) == (409, True)
        (job,) = served.get("/jobs/overview")["jobs"]
        assert job["state"] == "FINISHED"
        assert job["end-time"] == job["start-time"] + job["duration"]
        assert job["tasks"]["finished"] == 3


def test_what_there_is_not(served):
    for path in ("/jobs/none", "/jobs/none/checkpoints", "/jobs/none/savepoints/x", "/nonsense", "/jars"):
        answer = served.call("GET", path)
        assert answer.status == 404
        assert len(answer.body["errors"]) == 1
    answer = served.call("DELETE", "/jobs")
    assert (answer.status, set(answer.headers["allow"].split(", "))) == (405, {"GET", "HEAD"})
