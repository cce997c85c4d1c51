"""Jobs of a driver that was killed are in the history as it saw them last."""

from __future__ import annotations

import shutil

import msgspec
import pytest

from holdfast.checkpoint.driver_record import DriverRecord
from holdfast.common.configuration import Configuration
from holdfast.server.archive import JobArchive
from holdfast.server.driver import DriverServer
from holdfast.server.jobs_directory import JobsDirectory
from holdfast.server.last_seen import LastSeen, keep_lost_jobs
from holdfast.server.settings import HistorySettings, server_settings
from tests.server.serving import JOB, request, serving


@pytest.fixture
def killed(in_process, tmp_path):
    """A jobs directory in which a driver was killed while its job ran; its record."""
    directory, copy = JobsDirectory(tmp_path / "jobs"), tmp_path / "copy"
    with serving(tmp_path, **{"holdfast.history.interval": "100 ms"}) as served:
        (record,) = directory.living()
        folder = directory.last_seen(record.driver)
        notes = LastSeen(folder)
        served.wait(lambda: notes.read(JOB).resources["/checkpoints"]["counts"]["completed"] >= 2)
        shutil.copytree(folder, copy)
    assert not folder.exists(), "a driver that ends leaves no notes"
    shutil.copytree(copy, folder)
    dead = msgspec.structs.replace(DriverRecord.of_this_process(), pid=2**22 + 1)
    record = msgspec.structs.replace(record, process=dead)
    directory.write(record)
    return record


@pytest.fixture
def directory(tmp_path):
    return JobsDirectory(tmp_path / "jobs")


@pytest.fixture
def archive(tmp_path):
    return JobArchive(HistorySettings(str(tmp_path / "jobs" / "history"), 10))


def test_it_failed_with_its_last_checkpoints(killed, directory, archive):
    archive.remove(JOB)
    keep_lost_jobs(directory, archive)
    (lost,) = archive.overviews()
    assert (lost.job_id, lost.status) == (JOB, "FAILED")
    resources = archive.read(JOB).resources
    assert resources["/status"] == {"status": "FAILED"}
    assert resources[""]["state"] == "FAILED"
    assert resources["/checkpoints"]["latest"]["completed"]["external_path"]
    (told,) = resources["/exceptions"]["exceptionHistory"]["entries"]
    assert f"process {2**22 + 1}" in told["stacktrace"] and "is gone" in told["stacktrace"]
    assert directory.dead() == []
    assert not directory.last_seen(killed.driver).exists()


def test_the_next_server_finds_it(killed, archive, tmp_path):
    archive.remove(JOB)
    configuration = Configuration.from_dict({"rest.bind-port": "0", "holdfast.rest.linger": "0 ms"})
    server = DriverServer(server_settings(configuration, {"HOLDFAST_JOBS_DIR": str(tmp_path / "jobs")}))
    try:
        token = {"Authorization": f"Bearer {server.token}"}
        assert request(f"{server.url}/jobs", "GET", headers=token).body == {"jobs": [{"id": JOB, "status": "FAILED"}]}
    finally:
        server.close()


def test_a_job_that_ended_later_did_not_fail(killed, directory, archive):
    """In a driver that took it over. Here the history has the end of the very same job."""
    keep_lost_jobs(directory, archive)
    assert [job.status for job in archive.overviews()] == ["CANCELED"]
    assert directory.dead() == []


def test_a_job_that_another_driver_has_is_not_lost(killed, directory, archive):
    archive.remove(JOB)
    directory.write(msgspec.structs.replace(killed, driver="next", process=DriverRecord.of_this_process()))
    keep_lost_jobs(directory, archive)
    assert archive.overviews() == []
    assert [record.driver for record in directory.living()] == ["next"]
