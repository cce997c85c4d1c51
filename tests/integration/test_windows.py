"""Windows on Spark: a worker is killed, and results are exact."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.integration import window_job
from tests.integration.programs import published
from tests.job.window_jobs import EPOCHS, expected, expected_of_short_windows
from tests.kit.faults import FaultPlan


@pytest.mark.slow
def test_sessions_short_windows_and_late_rows_survive_a_kill(spark: Any, tmp_path: Path) -> None:
    """The worker dies behind the commit of an epoch: sessions that it merged are merged again, and windows that it gave
    without ever having stored them are given again, once.
    """
    faults = FaultPlan(tmp_path / "faults")
    faults.add("task.after-commit", "kill", epoch=3, level=1)
    with faults.among(spark):
        assert window_job.run(tmp_path) == 1
    assert not faults.not_reached()
    sums, late = expected("session", EPOCHS[:5])
    assert published(tmp_path / "sums") == sums
    assert published(tmp_path / "late") == late
    short, late_for_short = expected_of_short_windows()
    assert published(tmp_path / "short-sums") == short
    assert published(tmp_path / "short-late") == late_for_short
