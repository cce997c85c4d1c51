"""Snapshots that take long to be stored do not hold up the epochs, and their worker's death costs their checkpoint."""

from __future__ import annotations

import logging
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.integration.audited_job import audit, run
from tests.kit.faults import FaultPlan

pytestmark = pytest.mark.slow

ROWS, KEYS = 4_000, 60

SETTINGS = {
    "execution.checkpointing.interval": "100 ms",
    # Every snapshot is a file, however small.
    "execution.checkpointing.data-inline-threshold": "0 b",
    "execution.checkpointing.tolerable-failed-checkpoints": "3",
    "holdfast.checkpoint.upload-heartbeat-timeout": "3 s",
    "restart-strategy.type": "none",
}


@pytest.mark.parametrize("dies", [False, True], ids=["slow", "dies"])
def test_epochs_go_on_while_a_snapshot_is_stored(
    spark: Any, dies: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    faults = FaultPlan(tmp_path / "faults")
    held = faults.add("snapshot.write", "hold:120000", hit=1)
    # Between two epochs: a worker that has a task would fail its epoch with its death.
    going_on = faults.add("driver.epoch-collected", "hold:120000", hit=5)
    with faults.among(spark), ThreadPoolExecutor() as pool, caplog.at_level(logging.INFO, logger="holdfast"):
        job = pool.submit(run, tmp_path / "job", SETTINGS, ROWS, KEYS)
        worker = faults.wait(held)["pid"]
        faults.wait(going_on)
        if dies:
            os.kill(worker, signal.SIGKILL)
        else:
            faults.release(held)
        faults.release(going_on)
        assert job.result(240).restarts == 0
    assert ("its worker is gone" in caplog.text) is dies
    audit(tmp_path / "job", ROWS, KEYS)
