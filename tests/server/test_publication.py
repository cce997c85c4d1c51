"""What a program's environment starts for its jobs."""

from __future__ import annotations

import sys

import pytest

from holdfast.errors import ConfigurationError, MissingExtraError
from holdfast.server import driver
from holdfast.server.archive import JobArchive
from holdfast.server.jobs_directory import JobsDirectory
from holdfast.server.settings import HistorySettings
from tests.cli.conftest import await_true
from tests.job.counting import EPOCHS, WatchedSink, counting, settings
from tests.server.serving import request


@pytest.fixture(autouse=True)
def own_server(monkeypatch, in_process):
    """The server of the process is one of this test alone."""
    monkeypatch.setattr(driver, "_running", None)
    yield
    if driver._running is not None:
        driver._running.close()


def _settings(tmp_path, **changes):
    return {**settings(tmp_path), "holdfast.jobs-dir": str(tmp_path / "jobs"), **changes}


def test_without_a_word_nothing_is_started(tmp_path):
    counting(_settings(tmp_path), EPOCHS, WatchedSink(tmp_path / "out")).get_job_execution_result().result(20)
    assert driver._running is None
    assert not (tmp_path / "jobs").exists()


def test_a_port_starts_the_server_and_keeps_the_history(tmp_path):
    given = _settings(tmp_path, **{"rest.port": "0", "holdfast.rest.linger": "0 ms"})
    client = counting(given, EPOCHS, WatchedSink(tmp_path / "out"), ends=False)
    (record,) = JobsDirectory(tmp_path / "jobs").living()
    token = (tmp_path / "jobs" / "token").read_text().strip()
    await_true(lambda: client.get_job_status().result().name == "RUNNING")
    answer = request(record.url + "/jobs", "GET", headers={"Authorization": f"Bearer {token}"})
    assert answer.body == {"jobs": [{"id": "job", "status": "RUNNING"}]}
    # Whoever looks for the leader of the job finds this server.
    assert client._job.master.checkpoints.leadership.leader_address() == record.url
    client.cancel().result(20)
    # A second job of the same program is served by the same server.
    second = counting(given | {"holdfast.job-id": "second"}, EPOCHS, WatchedSink(tmp_path / "out2"))
    second.get_job_execution_result().result(20)
    (again,) = JobsDirectory(tmp_path / "jobs").living()
    assert (again.url, [job.job_id for job in again.jobs]) == (record.url, ["job", "second"])
    archive = JobArchive(HistorySettings(str(tmp_path / "jobs" / "history"), 10))
    assert {job.job_id: job.status for job in archive.overviews()} == {"job": "CANCELED", "second": "FINISHED"}


def test_a_history_without_a_server(tmp_path):
    given = _settings(tmp_path, **{"jobmanager.archive.fs.dir": f"file://{tmp_path}/kept"})
    counting(given, EPOCHS, WatchedSink(tmp_path / "out")).get_job_execution_result().result(20)
    assert driver._running is None
    job = JobArchive(HistorySettings(str(tmp_path / "kept"), 10)).read("job")
    assert job.status == "FINISHED"
    assert job.resources["/checkpoints"]["counts"]["completed"] > 0


def test_what_hinders_the_server_is_told_before_a_job_begins(tmp_path):
    with pytest.raises(ConfigurationError, match="tls-certificate"):
        counting(_settings(tmp_path, **{"rest.port": "0", "security.ssl.rest.enabled": "true"}), EPOCHS)
    assert not (tmp_path / "chk").exists()


def test_a_missing_package_is_told_with_its_extra(tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] in ("starlette", "uvicorn")]:
        monkeypatch.setitem(sys.modules, name, None)
    for name in ("app", "listener", "guards"):
        monkeypatch.delitem(sys.modules, f"holdfast.server.{name}", raising=False)
    with pytest.raises(MissingExtraError, match=r"'starlette'.*holdfast\[server\]"):
        counting(_settings(tmp_path, **{"rest.enabled": "true", "rest.port": "0"}), EPOCHS)


def test_a_job_ends_although_its_history_cannot_be_made(tmp_path, monkeypatch, caplog):
    def broken(*_):
        raise RuntimeError("broken view")

    monkeypatch.setattr("holdfast.server.archiving.resources_of", broken)
    given = _settings(tmp_path, **{"jobmanager.archive.fs.dir": str(tmp_path / "kept")})
    counting(given, EPOCHS, WatchedSink(tmp_path / "out")).get_job_execution_result().result(20)
    assert "broken view" in caplog.text
