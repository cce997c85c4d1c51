"""A driver program that is stopped, as if its host hung, at a failpoint."""

from __future__ import annotations

import json
from pathlib import Path

from holdfast.testing.chaos.processes import Process
from tests.kit.driver import DriverProgram


def stopping_at(directory: Path, point: str) -> Path:
    """A specification of failpoints: the process stops when it reaches ``point`` for the tenth time."""
    markers = directory / "markers"
    markers.mkdir()
    specification = directory / "failpoints.json"
    trigger = {"id": "stop", "point": point, "action": "stop", "hit": 10}
    specification.write_text(json.dumps({"directory": str(markers), "triggers": [trigger]}))
    return specification


def is_stopped(driver: DriverProgram) -> bool | None:
    """None while it runs, for ``wait_until``."""
    state = Path(f"/proc/{driver.pid}/stat").read_text().rpartition(")")[2].split()[0]
    return True if state == "T" else None


def resume(driver: DriverProgram) -> None:
    process = Process.read(driver.pid)
    assert process is not None
    process.resume()
