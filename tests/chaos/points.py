"""A job whose workers and drivers die at named points, each once in a round; the moments are drawn from the seed. Each
driver comes with another parallelism.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from pathlib import Path

from holdfast.testing.chaos import ChaosResult, Oracle
from holdfast.testing.chaos.target import START
from tests.integration import audited_job
from tests.integration.kill_points import DRIVER_POINTS, kill_workers
from tests.kit.driver import DriverProgram
from tests.kit.faults import FaultPlan

#: Of so many rows, in slices of fewer than ``LARGEST``, that all points are reached.
ROWS, KEYS, LARGEST = 12_000, 60, 500
#: Of a driver that hangs.
_PATIENCE = 300.0


def run_over_points(seed: int, directory: Path, settings: dict[str, str]) -> ChaosResult:
    """One driver after the other, until one comes to the end of the job."""
    began, chosen, job = time.monotonic(), random.Random(seed), directory / "job"
    faults = FaultPlan(directory / "faults")
    kill_workers(faults, chosen)
    for point in DRIVER_POINTS:
        faults.add(point, "kill", hit=chosen.randint(1, 4))
    given = {"settings": settings, "rows": ROWS, "keys": KEYS, "largest": LARGEST}
    codes, told = [-9], ""
    while codes[-1] == -9 and len(codes) <= len(DRIVER_POINTS) + 1:
        log = directory / f"log-{len(codes)}"
        surroundings = {**faults.environment, START: str(len(codes))}
        with DriverProgram(audited_job.__file__, [str(job), json.dumps(given)], log, surroundings) as driver:
            codes.append(driver.wait(_PATIENCE))
            told = driver.output
    oracle = Oracle(
        rows_in=lambda: range(ROWS), rows_out=lambda: [row[0] for row in audited_job.published(job / "first")]
    )
    struck = Counter("driver" if trigger.point in DRIVER_POINTS else "worker" for trigger in faults.all_reached())
    error = _error(job, faults, codes[-1], told)
    name = f"points, {settings['state.backend.type']}"
    return ChaosResult(name, seed, time.monotonic() - began, struck, len(codes) - 2, oracle.judge(), error)


def _error(job: Path, faults: FaultPlan, code: int, told: str) -> str | None:
    if code != 0:
        return f"the last driver ended with {code}:\n{told[-2_000:]}"
    if faults.not_reached():
        return f"nobody came by {[trigger.point for trigger in faults.not_reached()]}"
    try:
        audited_job.audit(job, ROWS, KEYS)
    except AssertionError as wrong:
        return str(wrong)
    return None
