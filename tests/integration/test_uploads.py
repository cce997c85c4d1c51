"""Snapshots that take long to be stored do not hold up the epochs, and their worker's death costs their checkpoint."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.integration.audited_job import audit
from tests.integration.test_kills import KEYS, ROWS, program
from tests.kit.faults import FaultPlan

pytestmark = pytest.mark.slow

SETTINGS = {
    "execution.checkpointing.interval": "100 ms",
    # Every snapshot is a file, however small.
    "execution.checkpointing.data-inline-threshold": "0 b",
    "execution.checkpointing.tolerable-failed-checkpoints": "3",
    "holdfast.checkpoint.upload-heartbeat-timeout": "3 s",
    "restart-strategy.type": "none",
}


@pytest.mark.parametrize("dies", [False, True], ids=["slow", "dies"])
def test_epochs_go_on_while_a_snapshot_is_stored(dies: bool, tmp_path: Path) -> None:
    faults = FaultPlan(tmp_path / "faults")
    held = faults.add("snapshot.write", "hold:120000", hit=1)
    going_on = faults.add("driver.epoch-collected", "touch", hit=5)
    with program(tmp_path, "log", faults, **SETTINGS) as driver:
        worker = faults.wait(held)["pid"]
        faults.wait(going_on)
        if dies:
            os.kill(worker, signal.SIGKILL)
        else:
            faults.release(held)
        assert driver.wait(240) == 0, driver.output[-4000:]
        assert ("its worker is gone" in driver.output) is dies
        assert "restarts=0" in driver.output
    audit(tmp_path / "job-0", ROWS, KEYS)
