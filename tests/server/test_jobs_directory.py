"""Which drivers live."""

from __future__ import annotations

import os

import msgspec
import pytest

from holdfast.checkpoint.driver_record import DriverRecord
from holdfast.common.configuration import Configuration
from holdfast.common.rest_options import ALLOWED_DIRECTORIES, PORTS
from holdfast.errors import ConfigurationError
from holdfast.server.jobs_directory import JobsDirectory, RecordedJob, ServerRecord
from holdfast.server.settings import history_enabled, jobs_directory, server_enabled
from tests.server.serving import JOB, serving


def _record(driver: str = "one", **process) -> ServerRecord:
    living = msgspec.structs.replace(DriverRecord.of_this_process(), **process)
    return ServerRecord(driver, living, "http://127.0.0.1:1")


def test_a_driver_is_told_while_it_lives(tmp_path):
    directory = JobsDirectory(tmp_path)
    assert directory.living() == []
    record = _record().with_job(RecordedJob("a", "first"), "app").with_job(RecordedJob("b", "second"), "app")
    directory.write(record)
    assert directory.living() == [record]
    assert directory.read("one").has("b")
    assert not record.has("c")
    directory.remove("one")
    assert directory.living() == []


def test_a_dead_driver_is_told_apart(tmp_path):
    directory = JobsDirectory(tmp_path)
    # Its number was given to another process, which started at another time.
    directory.write(_record("reused", started="1"))
    directory.write(_record("gone", pid=2**22 + 1))
    directory.write(_record("alive"))
    assert [record.driver for record in directory.living()] == ["alive"]
    assert [record.driver for record in directory.dead()] == ["gone", "reused"]


def test_a_record_that_cannot_be_read_is_left_alone(tmp_path):
    directory = JobsDirectory(tmp_path)
    directory.prepare()
    (tmp_path / "drivers" / "other.json").write_text("{}")
    assert directory.living() == []
    assert (tmp_path / "drivers" / "other.json").exists()


def test_a_directory_that_others_can_write_to_is_not_trusted(tmp_path):
    directory = JobsDirectory(tmp_path)
    directory.write(_record())
    (tmp_path / "drivers").chmod(0o777)
    with pytest.raises(ConfigurationError, match="0777"):
        directory.living()


def test_old_logs_are_dropped(tmp_path):
    directory = JobsDirectory(tmp_path)
    directory.write(_record("alive"))
    for number, driver in enumerate(["alive", *(f"old{n:03}" for n in range(110))]):
        directory.log_file(driver).write_text("")
        os.utime(directory.log_file(driver), (number, number))
    directory.drop_old_logs()
    kept = sorted(path.stem for path in (tmp_path / "logs").iterdir())
    assert kept == ["alive", *(f"old{n:03}" for n in range(10, 110))]


def test_the_record_of_a_server(in_process, tmp_path):
    with serving(tmp_path) as served:
        (record,) = JobsDirectory(tmp_path / "jobs").living()
        assert record.url == served.server.url
        assert record.jobs == (RecordedJob(JOB, "counting"),)
        assert record.application_id == "local-in-process"
        assert record.token_file == str(tmp_path / "jobs" / "token")
    assert JobsDirectory(tmp_path / "jobs").living() == []


def test_when_there_is_a_server():
    def enabled(settings, environment=None):
        return server_enabled(Configuration.from_dict(settings), environment or {})

    assert not enabled({})
    assert enabled({"rest.enabled": "true"})
    assert enabled({"rest.port": "8081"})
    assert enabled({}, {"HOLDFAST_RUN": "{}"})
    assert not enabled({"rest.enabled": "false", "rest.port": "8081"}, {"HOLDFAST_RUN": "{}"})
    assert not history_enabled(Configuration(), {})
    assert history_enabled(Configuration.from_dict({"jobmanager.archive.fs.dir": "/x"}), {})


def test_where_the_jobs_directory_is(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert jobs_directory(Configuration(), {}) == tmp_path / ".holdfast" / "jobs"
    assert jobs_directory(Configuration(), {"HOLDFAST_JOBS_DIR": "/a"}).as_posix() == "/a"
    told = Configuration.from_dict({"holdfast.jobs-dir": "/b"})
    assert jobs_directory(told, {"HOLDFAST_JOBS_DIR": "/a"}).as_posix() == "/b"


@pytest.mark.parametrize(
    ("text", "ports"), [("0", (0,)), ("8081", (8081,)), ("8081-8083", (8081, 8082, 8083)), ("1, 3-4", (1, 3, 4))]
)
def test_ports(text, ports):
    assert PORTS.parse(text) == ports
    assert PORTS.parse(PORTS.kind.show(ports)) == ports


@pytest.mark.parametrize("text", ["", "x", "-1", "70000", "9-5", "1-"])
def test_ports_that_are_none(text):
    with pytest.raises(ConfigurationError, match="8081-8090"):
        PORTS.parse(text)


def test_lists():
    assert ALLOWED_DIRECTORIES.parse(" /a ; s3://b ;; ") == ("/a", "s3://b")
