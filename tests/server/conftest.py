"""What tests of the server share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.serving import Served, serving
from tests.spark.in_process import InProcessSpark, install


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> InProcessSpark:
    """Jobs of the test run in this process, without Spark."""
    return install(monkeypatch)


@pytest.fixture
def served(in_process: InProcessSpark, tmp_path: Path) -> Iterator[Served]:
    """A server, and a job that runs and takes checkpoints."""
    with serving(tmp_path) as started:
        yield started
