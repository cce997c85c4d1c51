"""Workers and the driver of a job over Spark's streams are killed; what was published must be what was there."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.integration.stream_job import audit, calls, write_input
from tests.kit.driver import DriverProgram
from tests.kit.faults import FaultPlan

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).with_name("stream_job.py")
FILES = 8


def test_two_streams_and_a_batch_writer_over_kills(tmp_path: Path) -> None:
    write_input(tmp_path / "in", FILES)
    faults = FaultPlan(tmp_path / "faults")
    faults.add("task.outputs-sent", "kill", hit=14)
    # The function has returned, and nothing says so yet: its batch must come again, as it was.
    faults.add("for-each-batch.returned", "kill", hit=4)
    # A driver that is killed leaves the directory of its query.
    (tmp_path / "tmp").mkdir()
    environment = {**faults.environment, "TMPDIR": str(tmp_path / "tmp")}
    codes = []
    for number in range(2):
        with DriverProgram(PROGRAM, [str(tmp_path)], tmp_path / f"log-{number}", environment) as driver:
            codes.append(driver.wait(150))
    assert codes == [-signal.SIGKILL, 0], driver.output[-3000:]
    assert not faults.not_reached()
    audit(tmp_path, FILES)
    assert max(calls(tmp_path).values()) == 2
