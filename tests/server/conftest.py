"""What tests of the server share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.testing.in_process import InProcessEngine
from tests.server.serving import Served, serving


@pytest.fixture
def served(in_process: InProcessEngine, tmp_path: Path) -> Iterator[Served]:
    """A server, and a job that runs and takes checkpoints."""
    with serving(tmp_path) as started:
        yield started
