"""Metrics of functions on Spark, where a function goes from process to process and processes are killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.integration.counted_job import audit, start
from tests.kit.faults import FaultPlan

pytestmark = pytest.mark.slow

ROWS = 3_000


def test_what_was_counted_is_what_was_published(spark: Any, tmp_path: Path) -> None:
    """One worker dies before its state is committed, one behind that: only accepted epochs count."""
    faults = FaultPlan(tmp_path / "faults")
    faults.add("task.before-commit", "kill", hit=14)
    faults.add("task.after-commit", "kill", hit=26)
    with faults.among(spark):
        client = start(tmp_path, {"execution.checkpointing.interval": "100 ms"}, ROWS)
        counted = audit(client, tmp_path, ROWS)
    assert not faults.not_reached()
    assert client.get_history().restarts == 2
    assert 0 < counted < ROWS
