"""Workers and drivers of a job on files are killed while it joins and publishes them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.files_job import audit, write_input
from tests.kit.driver import DriverProgram
from tests.kit.faults import FaultPlan

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).with_name("files_job.py")
FILES, ROWS = 12, 250


def test_every_row_is_published_once_over_kills_of_workers_and_driver(tmp_path: Path) -> None:
    write_input(tmp_path / "in", FILES, ROWS)
    faults = FaultPlan(tmp_path / "faults")
    for point, hit in (("task.outputs-sent", 6), ("file-sink-joined", 2), ("task.after-commit", 30)):
        faults.add(point, "kill", hit=hit)
    # In the driver: while it publishes, in the first run and again in the second.
    faults.add("file-sink-held", "kill", hit=3)
    faults.add("file-sink-moved", "kill", hit=12)
    settings = {"spark.master": "local[2]", "holdfast.epoch.max-rows": "300"}
    codes = []
    for number in range(4):
        log = tmp_path / f"log-{number}"
        with DriverProgram(PROGRAM, [str(tmp_path), json.dumps(settings)], log, faults.environment) as driver:
            codes.append(driver.wait(200))
        if codes[-1] == 0:
            break
    assert codes == [-9, -9, 0], (codes, driver.output[-4000:])
    assert not faults.not_reached()
    audit(tmp_path, FILES, ROWS)
