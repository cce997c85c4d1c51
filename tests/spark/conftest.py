"""What tests of the driver share."""

from __future__ import annotations

import pytest

from tests.spark.in_process import InProcessSpark, install


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> InProcessSpark:
    """Jobs of the test run in this process, without Spark."""
    return install(monkeypatch)
