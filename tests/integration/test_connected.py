"""Connected streams and side outputs on Spark: workers are killed, and results are exact."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.connected_job import EPOCHS
from tests.integration.programs import published
from tests.kit.driver import DriverProgram
from tests.kit.faults import FaultPlan
from tests.spark.connected_functions import ORDERS, RATES, PriceModel

PROGRAM = Path(__file__).with_name("connected_job.py")


@pytest.mark.slow
def test_connected_streams_with_a_side_output_survive_kills(tmp_path: Path) -> None:
    """One worker dies before the state of an epoch is committed, one right behind it."""
    faults = FaultPlan(tmp_path / "faults")
    faults.add("task.before-commit", "kill", epoch=2, level=1)
    faults.add("task.after-commit", "kill", epoch=4, level=1)
    with DriverProgram(PROGRAM, [str(tmp_path)], tmp_path / "log", faults.environment) as driver:
        assert driver.wait(240) == 0, driver.output[-4000:]
        restarts = int(driver.output.rpartition("restarts=")[2].split()[0])
    assert not faults.not_reached()
    assert restarts == 2
    expected = PriceModel().run(ORDERS[:EPOCHS], RATES[:EPOCHS])
    assert published(tmp_path / "priced") == sorted(expected.priced)
    assert published(tmp_path / "unpriced") == sorted(expected.unpriced)
