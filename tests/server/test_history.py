"""Jobs that ended are told of by later drivers, with their last checkpoints."""

from __future__ import annotations

import time

from holdfast.server.archive import JobArchive
from holdfast.server.settings import HistorySettings
from tests.server.serving import JOB, serving


def test_a_job_that_was_cancelled(in_process, tmp_path, later):
    with serving(tmp_path) as served:
        served.await_checkpoints(3)
        served.end()
        details = served.get(f"/jobs/{JOB}")
        statistics = served.get(f"/jobs/{JOB}/checkpoints")
        vertex = details["vertices"][1]["id"]
        last = statistics["latest"]["completed"]["id"]
        paths = [
            "/status", "/plan", "/config", "/exceptions", f"/vertices/{vertex}", "/checkpoints/config",
            f"/checkpoints/details/{last}", f"/checkpoints/details/{last}/subtasks/{vertex}",
        ]
        answers = {path: served.get(f"/jobs/{JOB}{path}") for path in paths}
    assert later("/jobs").body == {"jobs": [{"id": JOB, "status": "CANCELED"}]}
    (overview,) = later("/jobs/overview").body["jobs"]
    assert (overview["state"], overview["tasks"]["canceled"]) == ("CANCELED", 3)
    assert later("/overview").body["jobs-cancelled"] == 1
    assert later(f"/jobs/{JOB}").body["timestamps"] == details["timestamps"]
    assert later(f"/v1/jobs/{JOB}/checkpoints").body == statistics
    for path, answer in answers.items():
        told = later(f"/jobs/{JOB}{path}").body
        assert {**told, "now": 0} == {**answer, "now": 0}, path
    assert later(f"/jobs/{JOB}/metrics?get=numRestarts").body == [{"id": "numRestarts", "value": "0"}]
    assert later(f"/jobs/{JOB}/checkpoints/details/99999").status == 404
    assert later(f"/jobs/{JOB}/savepoints", "POST").status == 409
    assert later(f"/jobs/{JOB}", "PATCH").status == 202


def test_a_job_that_failed(in_process, tmp_path, later):
    def fail(spec):
        raise ValueError("for good")

    in_process.before_epoch = fail
    with serving(tmp_path, **{"restart-strategy.type": "none"}) as served:
        served.wait(lambda: not served.client.is_running())
    assert later(f"/jobs/{JOB}/status").body == {"status": "FAILED"}
    (failure,) = later(f"/jobs/{JOB}/exceptions").body["exceptionHistory"]["entries"]
    assert "for good" in failure["stacktrace"]
    assert later(f"/jobs/{JOB}", "PATCH").status == 409


def test_the_number_of_kept_jobs_is_bounded(tmp_path):
    archive = JobArchive(HistorySettings(str(tmp_path / "history"), retained=3))
    for number in range(6):
        time.sleep(0.002)
        archive.write(f"job {number}/x", {"jid": f"job {number}/x", "state": "FINISHED"}, {})
    assert [job.job_id for job in archive.overviews()] == [f"job {number}/x" for number in (3, 4, 5)]
    assert [job.status for job in archive.overviews()] == ["FINISHED"] * 3
    time.sleep(0.002)
    # What was read before is noticed when it changes.
    archive.write("job 4/x", {"jid": "job 4/x", "state": "FAILED"}, {})
    assert [job.status for job in archive.overviews()] == ["FINISHED", "FINISHED", "FAILED"]


def test_damaged_and_foreign_files_are_passed_over(tmp_path, caplog):
    archive = JobArchive(HistorySettings(str(tmp_path / "history"), retained=10))
    archive.write("good", {"jid": "good", "state": "FINISHED"}, {})
    (tmp_path / "history" / "half.json").write_bytes(b'{"version": 1, "job_')
    newer = b'{"version": 99, "job_id": "new", "overview": {}, "resources": {}}'
    (tmp_path / "history" / "new.json").write_bytes(newer)
    (tmp_path / "history" / "notes.txt").write_bytes(b"mine")
    assert [job.job_id for job in archive.overviews()] == ["good"]
    assert archive.read("half") is None
    assert archive.read("../good") is None


def test_a_history_that_cannot_be_written_ends_no_job(tmp_path, caplog):
    (tmp_path / "file").write_text("not a directory")
    archive = JobArchive(HistorySettings(str(tmp_path / "file" / "below"), retained=10))
    archive.write("job", {"jid": "job", "state": "FINISHED"}, {})
    assert "could not be kept" in caplog.text
    assert archive.overviews() == []
