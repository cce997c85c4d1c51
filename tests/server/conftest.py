"""What tests of the server share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.common.configuration import Configuration
from holdfast.server.driver import DriverServer
from holdfast.server.settings import server_settings
from holdfast.testing.in_process import InProcessEngine
from tests.server.serving import Answer, Served, request, serving


@pytest.fixture
def served(in_process: InProcessEngine, tmp_path: Path) -> Iterator[Served]:
    """A server, and a job that runs and takes checkpoints."""
    with serving(tmp_path) as started:
        yield started


@pytest.fixture
def later(tmp_path):
    """Asks a server of a later driver, which runs no job."""
    configuration = Configuration.from_dict({"rest.bind-port": "0", "holdfast.rest.linger": "0 ms"})
    server = DriverServer(server_settings(configuration, {"HOLDFAST_JOBS_DIR": str(tmp_path / "jobs")}))

    def call(path: str, method: str = "GET") -> Answer:
        return request(server.url + path, method, headers={"Authorization": f"Bearer {server.token}"})

    yield call
    server.close()
