"""Drivers of a job without Spark are killed at named points, and its checkpoints are damaged: the next driver goes on,
or says why it does not.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration import audited_job
from tests.integration.audited_job import audit
from tests.integration.kill_points import DRIVER_POINTS
from tests.kit.driver import DriverProgram
from tests.kit.faults import FaultPlan

pytestmark = pytest.mark.slow

ROWS, KEYS = 4_000, 60


def program(directory: Path, log: str, faults: FaultPlan, **settings: str) -> DriverProgram:
    given = {"settings": settings, "rows": ROWS, "keys": KEYS, "without-spark": True}
    arguments = [str(directory / "job"), json.dumps(given)]
    return DriverProgram(audited_job.__file__, arguments, directory / log, faults.environment)


@pytest.mark.parametrize("backend", ["lmdb", "heap"])
def test_the_driver_killed_at_named_points(backend: str, tmp_path: Path) -> None:
    """Each point kills one driver; the next one, under the same job id, goes on where the last checkpoint is."""
    faults = FaultPlan(tmp_path / "faults")
    points = DRIVER_POINTS[::2] if backend == "lmdb" else DRIVER_POINTS[1::2]
    for number, point in enumerate(points):
        faults.add(point, "kill", hit=2 + number)
    codes = []
    for number in range(len(points) + 2):
        with program(tmp_path, f"log-{number}", faults, **{"state.backend": backend}) as driver:
            codes.append(driver.wait(240))
        if codes[-1] == 0:
            break
    assert codes[-1] == 0 and set(codes[:-1]) == {-9}, (codes, driver.output[-4000:])
    assert not faults.not_reached() and len(codes) == len(points) + 1
    audit(tmp_path / "job", ROWS, KEYS)


def test_a_damaged_newest_checkpoint_whose_rows_were_not_published_is_passed_over(tmp_path: Path) -> None:
    faults = FaultPlan(tmp_path / "faults")
    faults.add("checkpoint.after-metadata", "kill", hit=3)
    with program(tmp_path, "log-1", faults) as driver:
        assert driver.wait(240) == -9, driver.output[-4000:]
    newest = max((tmp_path / "job" / "checkpoints" / "audited").glob("chk-*"), key=lambda path: int(path.name[4:]))
    damage(newest / "_metadata")
    with program(tmp_path, "log-2", faults) as driver:
        assert driver.wait(240) == 0, driver.output[-4000:]
        assert str(newest) in driver.output
    audit(tmp_path / "job", ROWS, KEYS)


def test_a_damaged_newest_checkpoint_whose_rows_were_published_stops_the_job(tmp_path: Path) -> None:
    faults = FaultPlan(tmp_path / "faults")
    faults.add("driver.commit-begun", "kill", hit=3)
    with program(tmp_path, "log-1", faults) as driver:
        assert driver.wait(240) == -9, driver.output[-4000:]
    newest = max((tmp_path / "job" / "checkpoints" / "audited").glob("chk-*"), key=lambda path: int(path.name[4:]))
    victim = max(
        (path for path in newest.iterdir() if path.name[0] != "_" or path.name == "_metadata"),
        key=lambda p: p.stat().st_size,
    )
    untouched = victim.read_bytes()
    damage(victim)
    with program(tmp_path, "log-2", faults) as driver:
        assert driver.wait(240) == 1
        assert str(victim) in driver.output and "accept-repeated-output" in driver.output
    victim.write_bytes(untouched)
    with program(tmp_path, "log-3", faults) as driver:
        assert driver.wait(240) == 0, driver.output[-4000:]
    audit(tmp_path / "job", ROWS, KEYS)


def damage(path: Path) -> None:
    """Flip one bit in the middle."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
