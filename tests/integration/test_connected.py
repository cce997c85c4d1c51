"""Connected streams and side outputs on Spark: workers are killed, and results are exact."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.integration import connected_job
from tests.integration.connected_job import EPOCHS
from tests.integration.programs import published
from tests.job.connected_functions import ORDERS, RATES, PriceModel
from tests.kit.faults import FaultPlan


@pytest.mark.slow
def test_connected_streams_with_a_side_output_survive_kills(spark: Any, tmp_path: Path) -> None:
    """One worker dies before the state of an epoch is committed, one right behind it."""
    faults = FaultPlan(tmp_path / "faults")
    faults.add("task.before-commit", "kill", epoch=2, level=1)
    faults.add("task.after-commit", "kill", epoch=4, level=1)
    with faults.among(spark):
        assert connected_job.run(tmp_path) == 2
    assert not faults.not_reached()
    expected = PriceModel().run(ORDERS[:EPOCHS], RATES[:EPOCHS])
    assert published(tmp_path / "priced") == sorted(expected.priced)
    assert published(tmp_path / "unpriced") == sorted(expected.unpriced)
