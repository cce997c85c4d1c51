"""Jobs that are found through their checkpoint directory, and why one is not."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast.checkpoint.driver_record import DriverRecord
from holdfast.checkpoint.job_address import AddressFiles, JobAddress
from holdfast.common.job_client import JobClient
from holdfast.server import driver
from holdfast.storage.filesystem import Storage
from holdfast.testing.in_process import InProcessEngine
from tests.cli.conftest import Cli, await_true
from tests.job.counting import EPOCHS, WatchedSink, counting, settings


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "chk")


@pytest.fixture
def files(uri: str) -> AddressFiles:
    return AddressFiles(Storage.for_uri(uri), "job")


@pytest.fixture
def job(tmp_path: Path, in_process: InProcessEngine, monkeypatch: pytest.MonkeyPatch, uri: str) -> Iterator[JobClient]:
    """A job whose driver has a jobs directory that the command line does not know."""
    monkeypatch.setattr(driver, "_running", None)
    changes = {
        "holdfast.jobs-dir": str(tmp_path / "elsewhere"),
        "execution.checkpointing.savepoint-dir": str(tmp_path / "sp"),
        "holdfast.rest.linger": "0 ms",
        "holdfast.epoch.idle-wait": "20 ms",
        "rest.port": "0",
    }
    client = counting(settings(tmp_path, **changes), EPOCHS, WatchedSink(tmp_path / "out"), ends=False)
    await_true(lambda: client.get_job_status().result().name == "RUNNING")
    yield client
    client.cancel().result(20)
    assert driver._running is not None
    driver._running.close()


def rewrite(files: AddressFiles, **changes: Any) -> JobAddress:
    left = files.read()
    assert left is not None
    changed = msgspec.structs.replace(left, **changes)
    files.write(changed, files.read_token())
    return changed


def on_another_host(record: DriverRecord) -> DriverRecord:
    return msgspec.structs.replace(record, host="other-host", boot="other-boot", machine="other-machine")


def test_a_job_is_found_by_its_checkpoints_alone(cli: Cli, job: JobClient, uri: str, tmp_path: Path) -> None:
    assert cli("list").lines[1:] == ["No running jobs.", "No scheduled jobs."], "not through the jobs directory"
    assert cli("-c", uri, "list", "-r").lines[2].endswith(" : job : counting (RUNNING)")
    # Behind the verb, as a URI, and with the folder of the job itself.
    for place in (uri, f"file://{uri}", "chk", f"{uri}/", f"{uri}/job"):
        (listed,) = cli("list", "--checkpoints", place, "--json").json["jobs"]
        assert (listed["jid"], listed["state"]) == ("job", "RUNNING")
    assert cli("-c", uri, "list", "-yid", "local-in-process", "--json").json["jobs"]
    assert not cli("-c", uri, "list", "-yid", "another", "--json").json["jobs"]
    # By its id, or without when there is only one.
    for named in (("job",), ()):
        path = cli("-c", uri, "savepoint", *named).lines[2].removeprefix("Savepoint completed. Path: ")
        assert (Path(path) / "_metadata").exists()
        assert "completed." in cli("-c", uri, "checkpoint", *named).lines[2]
        assert cli("-c", uri, "checkpoints", *named, "--json").json["counts"]["completed"] > 0
    cancelled = cli("-c", uri, "cancel", "-s", str(tmp_path / "sp" / "last"), "job").lines[-1]
    assert cancelled.startswith(f"Cancelled job job. Savepoint stored in {tmp_path}/sp/last/savepoint-")


def test_the_overview_is_that_of_the_server(cli: Cli, job: JobClient, uri: str, tmp_path: Path) -> None:
    (by_checkpoints,) = cli("-c", uri, "list", "--json").json["jobs"]
    (by_directory,) = cli("list", "--jobs-dir", str(tmp_path / "elsewhere"), "--json").json["jobs"]
    moving = {"duration", "last-modification"}
    assert by_directory.keys() == by_checkpoints.keys()
    assert by_directory["tasks"]["total"] == by_checkpoints["tasks"]["total"] > 0
    for key in by_directory.keys() - moving - {"tasks"}:
        assert by_directory[key] == by_checkpoints[key]


def test_a_job_that_has_ended_left_no_address(cli: Cli, job: JobClient, uri: str, files: AddressFiles) -> None:
    assert files.read() is not None
    cli("-c", uri, "stop", "job")
    await_true(lambda: files.read() is None)
    assert cli("-c", uri, "stop", "job", code=1).err.startswith("Job job has ended: it is FINISHED, since 2")
    listed = cli("-c", uri, "list")
    assert listed.lines == ["Waiting for response...", "No running jobs.", "No scheduled jobs."]
    assert "the jobs have ended, or their drivers have no job server" in listed.err


def test_a_driver_that_does_not_answer_is_told_as_dead(
    cli: Cli, job: JobClient, uri: str, files: AddressFiles
) -> None:
    left = files.read()
    assert left is not None
    rewrite(files, process=on_another_host(left.process), loopback=False, url="http://127.0.0.1:1")
    told = cli("-c", uri, "savepoint", "job", code=1).err
    assert "http://127.0.0.1:1 does not answer" in told
    assert "on other-host since" in told
    assert "local-in-process" in told
    assert "either it died, or this host does not reach it" in told
    listed = cli("-c", uri, "list", "-r")
    assert listed.lines[1:] == ["No running jobs."]
    assert "either it died" in listed.err
    # Another way to it is believed when the same driver is at its end.
    assert "completed" in cli("-c", uri, "checkpoint", "-m", left.url.removeprefix("http://")).out


def test_another_driver_at_the_address_gets_no_token(cli: Cli, job: JobClient, uri: str, files: AddressFiles) -> None:
    seen: list[str | None] = []

    class Stranger(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            seen.append(self.headers.get("Authorization"))
            self.send_response(200)
            self.end_headers()

        do_GET = do_HEAD

        def log_message(self, *_: object) -> None:
            """Nothing to say."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Stranger)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        rewrite(files, url=f"http://127.0.0.1:{server.server_port}")
        told = cli("-c", uri, "stop", "job", code=1).err
    finally:
        server.shutdown()
        server.server_close()
    assert "no driver of Holdfast answers there" in told
    assert seen == [None]
    # A later driver behind the same port is another one, too.
    assert driver._running is not None
    rewrite(files, url=driver._running.url, driver="0123456789abcdef")
    told = cli("-c", uri, "stop", "job", code=1).err
    assert "is not at" in told
    assert "expected 0123456789abcdef" in told


def test_a_server_on_the_loopback_of_another_host(cli: Cli, job: JobClient, uri: str, files: AddressFiles) -> None:
    left = files.read()
    assert left is not None
    assert left.loopback
    rewrite(files, process=on_another_host(left.process))
    port = left.url.rpartition(":")[2]
    told = cli("-c", uri, "cancel", "job", code=1).err
    assert f"listens on its own host alone ({left.url})" in told
    assert "rest.bind-address: 0.0.0.0" in told
    assert f"ssh -L {port}:127.0.0.1:{port} other-host" in told
    assert "rest.bind-address" in cli("-c", uri, "list").err
    # Through a forwarded port it is reached.
    assert cli("-c", uri, "list", "-m", f"127.0.0.1:{port}", "--json").json["jobs"][0]["jid"] == "job"


def test_a_token_that_cannot_be_read(cli: Cli, job: JobClient, uri: str, tmp_path: Path) -> None:
    token = tmp_path / "chk" / "job" / "server" / "token"
    token.unlink()
    told = cli("-c", uri, "savepoint", "job", code=1).err
    assert f"cannot be read: cannot read {token}" in told
    assert "run the command as a user who may read it" in told
    token.write_text("wrong")
    assert "The token is wrong" in cli("-c", uri, "savepoint", "job", code=1).err


def test_several_jobs_have_to_be_named(cli: Cli, job: JobClient, uri: str, files: AddressFiles, tmp_path: Path) -> None:
    second = AddressFiles(Storage.for_uri(uri), "second")
    left = files.read()
    assert left is not None
    second.write(msgspec.structs.replace(left, job_id="second", job_name="another"), files.read_token())
    told = cli("-c", uri, "savepoint", code=1).err
    assert f"2 jobs run in {uri}; expected one" in told
    assert "job : counting" in told
    assert "second : another" in told
    assert "There is no job third" in cli("-c", uri, "stop", "third", code=1).err
    # Of a driver that is dead nothing can be meant.
    second.write(msgspec.structs.replace(left, job_id="second", url="http://127.0.0.1:1"), files.read_token())
    assert "completed" in cli("-c", uri, "checkpoint").out
    # A record in a folder of another name is a copy.
    shutil.copytree(tmp_path / "chk" / "job", tmp_path / "chk" / "copy")
    assert "It was copied there" in cli("-c", uri, "checkpoint", "copy", code=1).err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-c", "nowhere", "list"), "There is nothing in"),
        (("-c", "nowhere", "stop", "job"), "execution.checkpointing.dir"),
        (("-c", "nonsense://x", "list"), "expected a local path, or one that begins with"),
        (("-c", "x", "run", "program.py"), "-D execution.checkpointing.dir=URI"),
        (("-c", "x", "list", "--jobs-dir", "y"), "Both -c and --jobs-dir"),
    ],
)
def test_errors_say_what_to_do(cli: Cli, arguments: tuple[str, ...], message: str) -> None:
    assert message in cli(*arguments, code=1).err


def test_a_directory_whose_jobs_have_no_server(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "chk" / "job" / "attempts").mkdir(parents=True)
    for arguments in (("stop",), ("stop", "job")):
        assert "rest.enabled: true" in cli("-c", "chk", *arguments, code=1).err
