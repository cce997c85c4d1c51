"""A job server in this process, with a job that runs without Spark."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.common.configuration import Configuration
from holdfast.common.job_client import JobClient
from holdfast.job.running_job import RunningJob
from holdfast.server.archive import JobArchive
from holdfast.server.archiving import archive_job
from holdfast.server.driver import DriverServer
from holdfast.server.served_job import ServedJob
from holdfast.server.settings import directories_of, server_settings
from tests.job.counting import EPOCHS, WatchedSink, counting, settings

JOB = "0123456789abcdef0123456789abcdef"


@dataclass
class Answer:
    status: int
    body: Any
    headers: dict[str, str]

    @property
    def error(self) -> str:
        return self.body["errors"][0]


class Served:
    """A server with one job, and a client of both."""

    def __init__(self, server: DriverServer, client: JobClient, archive: JobArchive, job: ServedJob) -> None:
        self.server = server
        self.client = client
        self.archive = archive
        self.job = job

    @property
    def port(self) -> int:
        return int(self.server.url.rpartition(":")[2])

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """A call with the token, unless ``headers`` say otherwise."""
        given = {"Authorization": f"Bearer {self.server.token}", **headers}
        return request(self.server.url + path, method, body, given)

    def get(self, path: str) -> Any:
        answer = self.call("GET", path)
        assert answer.status == 200, answer
        return answer.body

    def post(self, path: str, body: Any) -> str:
        """Start an operation; its trigger id."""
        answer = self.call("POST", path, body)
        assert answer.status == 202, answer
        return answer.body["request-id"]

    def await_operation(self, path: str) -> dict[str, Any]:
        return self.wait(lambda: (got := self.get(path))["status"]["id"] == "COMPLETED" and got)["operation"]

    def await_checkpoints(self, number: int = 1) -> dict[str, Any]:
        path = f"/jobs/{JOB}/checkpoints"
        return self.wait(lambda: (got := self.get(path))["counts"]["completed"] >= number and got)

    def wait(self, ready: Any, seconds: float = 20) -> Any:
        end = time.monotonic() + seconds
        while not (got := ready()):
            assert time.monotonic() < end, "it did not happen in time"
            time.sleep(0.02)
        return got

    def end(self) -> None:
        self.client.cancel().result(20)


def request(url: str, method: str, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    sent = urllib.request.Request(url, data, headers or {}, method=method)
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(sent, timeout=20) as response:
            return Answer(response.status, _content(response), dict(response.headers))
    except urllib.error.HTTPError as error:
        return Answer(error.code, _content(error), dict(error.headers))


def _content(response: Any) -> Any:
    data = response.read()
    kind = response.headers.get("Content-Type", "")
    return json.loads(data) if "json" in kind else data.decode()


@contextmanager
def serving(
    directory: Path,
    ends: bool = False,
    start: Callable[[dict[str, str]], JobClient] | None = None,
    **changes: str | None,
) -> Iterator[Served]:
    """``changes`` are settings of the job and of the server; None unsets one. The job, one that counts unless ``start``
    starts another, runs until the block ends.
    """
    wanted: dict[str, str | None] = {
        **settings(directory),
        "holdfast.job-id": JOB,
        "holdfast.epoch.idle-wait": "20 ms",
        "execution.checkpointing.savepoint-dir": str(directory / "savepoints"),
        "holdfast.jobs-dir": str(directory / "jobs"),
        "holdfast.rest.linger": "0 ms",
        "rest.bind-port": "0",
        **changes,
    }
    given = {key: value for key, value in wanted.items() if value is not None}
    configuration = Configuration.from_dict(given)
    parsed = server_settings(configuration, {})
    server = DriverServer(parsed)
    archive = JobArchive(parsed.history)
    # Without the server that the environment would start for itself.
    alone = given | {"rest.enabled": "false"}
    client = start(alone) if start else counting(alone, EPOCHS, WatchedSink(directory / "out"), ends=ends)
    running: RunningJob = client._job
    job = ServedJob(running.gateway, running.application_id, given, directories_of(configuration))
    server.publish(job)
    ended = threading.Event()

    def archived(_: BaseException | None) -> None:
        archive_job(archive, job)
        ended.set()

    client.on_end(archived)
    try:
        yield Served(server, client, archive, job)
    finally:
        client.cancel()
        assert ended.wait(20)
        server.close()
