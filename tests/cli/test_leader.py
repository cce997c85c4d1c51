"""Which of several drivers of one job the command line talks to."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from holdfast.checkpoint.driver_record import DriverRecord
from holdfast.cli.drivers import HostPlace
from holdfast.cli.errors import CommandError
from holdfast.common import Configuration
from holdfast.server.jobs_directory import JobsDirectory, RecordedJob, ServerRecord


@contextmanager
def driver(directory: Path, name: str, status: str) -> Iterator[str]:
    """The server of a driver that runs, or waits for, the job."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"status": status}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing to say."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    record = ServerRecord(name, DriverRecord.of_this_process(), url, jobs=(RecordedJob("job", "a job"),))
    JobsDirectory(directory).write(record)
    try:
        yield url
    finally:
        server.shutdown()
        server.server_close()


def place(directory: Path) -> HostPlace:
    return HostPlace(Configuration.from_dict({"holdfast.jobs-dir": str(directory)}))


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
@pytest.mark.parametrize("waiting", ["INITIALIZING", "SUSPENDED", "CREATED"])
def test_the_driver_that_leads_is_asked_and_not_one_that_stands_by(
    tmp_path: Path, order: tuple[str, str], waiting: str
) -> None:
    leader, standby = order
    with driver(tmp_path, leader, "RUNNING") as url, driver(tmp_path, standby, waiting):
        assert place(tmp_path).client_for("job").url == url


def test_a_driver_that_does_not_answer_hides_no_other(tmp_path: Path) -> None:
    with driver(tmp_path, "a", "RUNNING"):
        pass
    with driver(tmp_path, "b", "RUNNING") as url:
        assert place(tmp_path).client_for("job").url == url


def test_a_job_that_no_driver_has(tmp_path: Path) -> None:
    with driver(tmp_path, "a", "RUNNING"), pytest.raises(CommandError, match="runs a job other"):
        place(tmp_path).client_for("other")
