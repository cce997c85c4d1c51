"""The answers about checkpoints, field by field, and what requests start."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from holdfast.server.views_checkpoint import DISABLED_INTERVAL, distribution
from tests.server.serving import JOB, serving

DISTRIBUTION = {"min", "max", "avg", "p50", "p90", "p95", "p99", "p999"}
CHECKPOINT = {
    "className", "id", "status", "is_savepoint", "savepointFormat", "trigger_timestamp", "latest_ack_timestamp",
    "checkpointed_size", "state_size", "end_to_end_duration", "alignment_buffered", "processed_data", "persisted_data",
    "num_subtasks", "num_acknowledged_subtasks", "checkpoint_type", "tasks",
}
TASK = {
    "id", "status", "latest_ack_timestamp", "checkpointed_size", "state_size", "end_to_end_duration",
    "alignment_buffered", "processed_data", "persisted_data", "num_subtasks", "num_acknowledged_subtasks",
}


def test_statistics(served):
    served.await_checkpoints(3)
    answer = served.get(f"/jobs/{JOB}/checkpoints")
    assert set(answer) == {"counts", "summary", "latest", "history"}
    assert set(answer["counts"]) == {"restored", "total", "in_progress", "completed", "failed"}
    assert set(answer["summary"]) == {
        "checkpointed_size", "state_size", "end_to_end_duration", "alignment_buffered", "processed_data",
        "persisted_data",
    }
    assert all(set(summed) == DISTRIBUTION for summed in answer["summary"].values())
    assert answer["summary"]["checkpointed_size"]["max"] > 0
    assert set(answer["latest"]) == {"completed", "savepoint", "failed", "restored"}
    assert answer["latest"]["savepoint"] is None
    latest = answer["latest"]["completed"]
    assert set(latest) == CHECKPOINT | {"external_path", "discarded"}
    assert (latest["className"], latest["status"]) == ("completed", "COMPLETED")
    assert latest["checkpoint_type"] == "CHECKPOINT"
    assert latest["external_path"].endswith(f"{JOB}/chk-{latest['id']}")
    assert latest["num_acknowledged_subtasks"] == latest["num_subtasks"] == 3
    assert latest["state_size"] >= latest["checkpointed_size"] > 0


def test_history_is_the_newest_ten(served):
    served.await_checkpoints(12)
    ids = [entry["id"] for entry in served.get(f"/jobs/{JOB}/checkpoints")["history"]]
    assert len(ids) == 10
    assert ids == sorted(ids, reverse=True)


def test_details_by_vertex_and_subtask(served):
    served.await_checkpoints(2)
    number = served.get(f"/jobs/{JOB}/checkpoints")["latest"]["completed"]["id"]
    answer = served.get(f"/jobs/{JOB}/checkpoints/details/{number}")
    vertices = [vertex["id"] for vertex in served.get(f"/jobs/{JOB}")["vertices"]]
    assert list(answer["tasks"]) == vertices
    task = answer["tasks"][vertices[1]]
    assert set(task) == TASK
    assert (task["status"], task["num_subtasks"], task["num_acknowledged_subtasks"]) == ("COMPLETED", 2, 2)
    assert answer["state_size"] == sum(task["state_size"] for task in answer["tasks"].values())
    details = served.get(f"/jobs/{JOB}/checkpoints/details/{number}/subtasks/{vertices[1]}")
    assert set(details) == TASK | {"summary", "subtasks"}
    assert set(details["summary"]) == {
        "checkpointed_size", "state_size", "end_to_end_duration", "checkpoint_duration", "alignment", "start_delay",
    }
    assert set(details["summary"]["checkpoint_duration"]) == {"sync", "async"}
    assert set(details["summary"]["alignment"]) == {"buffered", "processed", "persisted", "duration"}
    assert [subtask["index"] for subtask in details["subtasks"]] == [0, 1]
    assert set(details["subtasks"][0]) == {
        "className", "index", "status", "ack_timestamp", "end_to_end_duration", "checkpointed_size", "state_size",
        "checkpoint", "alignment", "start_delay", "unaligned_checkpoint", "aborted",
    }
    assert details["state_size"] == sum(subtask["state_size"] for subtask in details["subtasks"])


def test_details_of_what_there_is_not(served):
    served.await_checkpoints()
    assert served.call("GET", f"/jobs/{JOB}/checkpoints/details/999999").status == 404
    assert served.call("GET", f"/jobs/{JOB}/checkpoints/details/x").status == 400
    assert served.call("GET", f"/jobs/{JOB}/checkpoints/details/1/subtasks/none").status == 404


def test_configuration(served):
    answer = served.get(f"/jobs/{JOB}/checkpoints/config")
    assert answer == {
        "mode": "exactly_once", "interval": 10, "timeout": 600_000, "min_pause": 0, "max_concurrent": 1,
        "externalization": {"enabled": False, "delete_on_cancellation": True}, "state_backend": "lmdb",
        "checkpoint_storage": "filesystem", "unaligned_checkpoints": False, "tolerable_failed_checkpoints": 0,
        "aligned_checkpoint_timeout": 0, "checkpoints_after_tasks_finish": True, "state_changelog_enabled": False,
        "changelog_periodic_materialization_interval": 0, "changelog_storage": "",
    }


def test_without_checkpoints(in_process, tmp_path):
    with serving(tmp_path, **{"execution.checkpointing.interval": None}) as served:
        for path in ("", "/config", "/details/1"):
            answer = served.call("GET", f"/jobs/{JOB}/checkpoints{path}")
            assert (answer.status, answer.error) == (404, "Checkpointing has not been enabled.")
        # One that is asked for is told of, and so are the settings.
        served.wait(lambda: served.get(f"/jobs/{JOB}/status")["status"] == "RUNNING")
        trigger = served.post(f"/jobs/{JOB}/savepoints", {})
        assert "location" in served.await_operation(f"/jobs/{JOB}/savepoints/{trigger}")
        assert served.get(f"/jobs/{JOB}/checkpoints/config")["interval"] == DISABLED_INTERVAL


def test_a_savepoint_is_triggered_and_polled(served, tmp_path):
    served.await_checkpoints()
    trigger = served.post(f"/jobs/{JOB}/savepoints", {"target-directory": str(tmp_path / "savepoints" / "mine")})
    assert len(trigger) == 32
    operation = served.await_operation(f"/jobs/{JOB}/savepoints/{trigger}")
    assert set(operation) == {"location"}
    assert (Path(operation["location"]) / "_metadata").exists()
    assert Path(operation["location"]).parent == tmp_path / "savepoints" / "mine"
    latest = served.get(f"/jobs/{JOB}/checkpoints")["latest"]["savepoint"]
    assert (latest["is_savepoint"], latest["checkpoint_type"]) == (True, "SAVEPOINT")
    assert (latest["savepointFormat"], latest["external_path"]) == ("CANONICAL", operation["location"])
    assert served.get(f"/jobs/{JOB}/status") == {"status": "RUNNING"}


def test_the_same_trigger_id_is_the_same_savepoint(served):
    served.await_checkpoints()
    trigger = secrets.token_hex(16)
    for _ in range(3):
        assert served.post(f"/jobs/{JOB}/savepoints", {"triggerId": trigger}) == trigger
    first = served.await_operation(f"/jobs/{JOB}/savepoints/{trigger}")
    assert served.post(f"/jobs/{JOB}/savepoints", {"triggerId": trigger}) == trigger
    assert served.await_operation(f"/jobs/{JOB}/savepoints/{trigger}") == first
    folders = list(Path(first["location"]).parent.glob("savepoint-*"))
    assert folders == [Path(first["location"])]


def test_a_savepoint_that_fails_is_completed_with_its_cause(served, tmp_path):
    served.await_checkpoints()
    (tmp_path / "savepoints").mkdir(exist_ok=True)
    (tmp_path / "savepoints" / "file").write_text("not a directory")
    trigger = served.post(
        f"/jobs/{JOB}/savepoints", {"target-directory": str(tmp_path / "savepoints" / "file" / "below")}
    )
    operation = served.await_operation(f"/jobs/{JOB}/savepoints/{trigger}")
    assert set(operation) == {"failure-cause"}
    assert set(operation["failure-cause"]) == {"class", "stack-trace", "serialized-throwable"}
    assert operation["failure-cause"]["class"].startswith("holdfast.errors.")
    assert served.get(f"/jobs/{JOB}/status") == {"status": "RUNNING"}


def test_without_a_directory_there_is_no_savepoint(in_process, tmp_path):
    with serving(tmp_path, **{"execution.checkpointing.savepoint-dir": None}) as served:
        for path in ("savepoints", "stop"):
            answer = served.call("POST", f"/jobs/{JOB}/{path}", {})
            assert (answer.status, "execution.checkpointing.savepoint-dir" in answer.error) == (400, True)


def test_unknown_triggers(served):
    for path in ("savepoints", "checkpoints"):
        assert served.call("GET", f"/jobs/{JOB}/{path}/{secrets.token_hex(16)}").status == 404


@pytest.mark.parametrize(
    "body",
    [
        b"not json", b"[]", b'{"target-directory": 5}', b'{"formatType": "OTHER"}', b'{"triggerId": "short"}',
        b'{"cancel-job": "yes"}', b"\xff\xfe",
    ],
)
def test_bodies_that_are_wrong(served, body):
    answer = served.call("POST", f"/jobs/{JOB}/savepoints", body)
    assert answer.status == 400
    assert "SavepointTrigger" in answer.error


def test_a_checkpoint_by_hand(served):
    served.await_checkpoints()
    for kind in ("CONFIGURED", "FULL", "INCREMENTAL"):
        trigger = served.post(f"/jobs/{JOB}/checkpoints", {"checkpointType": kind})
        operation = served.await_operation(f"/jobs/{JOB}/checkpoints/{trigger}")
        assert set(operation) == {"checkpointId"}
        assert operation["checkpointId"] > 0


def test_a_job_is_stopped_with_a_savepoint(served, tmp_path):
    served.await_checkpoints()
    body = {"targetDirectory": str(tmp_path / "savepoints"), "drain": False, "formatType": "CANONICAL"}
    body["triggerId"] = "ab" * 16
    trigger = served.post(f"/jobs/{JOB}/stop", body)
    operation = served.await_operation(f"/jobs/{JOB}/savepoints/{trigger}")
    assert (Path(operation["location"]) / "_metadata").exists()
    served.wait(lambda: served.get(f"/jobs/{JOB}/status")["status"] == "FINISHED")
    latest = served.get(f"/jobs/{JOB}/checkpoints")["latest"]["savepoint"]
    assert latest["checkpoint_type"] == "SYNC_SAVEPOINT"
    assert served.post(f"/jobs/{JOB}/stop", body) == trigger, "sent again, it is the same stop"
    assert served.call("POST", f"/jobs/{JOB}/savepoints", {}).status == 409


def test_a_job_is_cancelled_behind_a_savepoint(served):
    served.await_checkpoints()
    trigger = served.post(f"/jobs/{JOB}/savepoints", {"cancel-job": True})
    assert "location" in served.await_operation(f"/jobs/{JOB}/savepoints/{trigger}")
    served.wait(lambda: served.get(f"/jobs/{JOB}/status")["status"] == "CANCELED")


def test_a_savepoint_is_disposed_of(served, tmp_path):
    served.await_checkpoints()
    trigger = served.post(f"/jobs/{JOB}/savepoints", {})
    path = served.await_operation(f"/jobs/{JOB}/savepoints/{trigger}")["location"]
    answer = served.call("POST", "/savepoint-disposal", {"savepoint-path": path})
    assert answer.status == 200
    assert served.await_operation(f"/savepoint-disposal/{answer.body['request-id']}") == {}
    assert not Path(path).exists()
    again = served.call("POST", "/v1/savepoint-disposal", {"savepoint-path": path}).body["request-id"]
    assert set(served.await_operation(f"/savepoint-disposal/{again}")) == {"failure-cause"}
    assert served.call("POST", "/savepoint-disposal", {}).status == 400
    assert served.call("POST", "/savepoint-disposal").status == 400
    assert served.call("POST", "/savepoint-disposal", {"savepoint-path": "/etc"}).status == 403
    assert served.call("GET", f"/savepoint-disposal/{secrets.token_hex(16)}").status == 404


def test_distributions():
    assert distribution([]).max == 0
    told = distribution(range(1, 101))
    assert (told.min, told.max, told.avg) == (1, 100, 50)
    assert (told.p50, told.p99) == (50.5, 99.99)
    assert distribution([7]).p999 == 7.0


def test_the_interval_of_a_job_without_one():
    assert DISABLED_INTERVAL == 9_223_372_036_854_775_807
