"""The job on files in a process without Spark, which is killed at drawn moments and started again until it ends."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.files_job import audit, write_input
from tests.kit.faults import FaultPlan

_PROGRAM = """
import json, sys
from contextlib import suppress
from pathlib import Path
from holdfast.errors import JobEndedError
from holdfast.testing.in_process import InProcessEngine
from tests.integration import files_job
with InProcessEngine().installed(), suppress(JobEndedError):
    files_job.run(Path(sys.argv[1]), json.loads(sys.argv[2]))
"""
#: Where everything dies at once: tasks and driver are one process.
POINTS = [
    "task.outputs-sent",
    "task.after-commit",
    "file-sink-joined",
    "driver.epoch-collected",
    "checkpoint.before-metadata",
    "checkpoint.after-metadata",
    "driver.commit-begun",
    "file-sink-moved",
    "file-sink-held",
    "sink.after-commit",
]
FILES, ROWS = 6, 50


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1))
def test_every_row_is_published_once_over_kills(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    write_input(tmp_path / "in", FILES, ROWS)
    faults = FaultPlan(tmp_path / "faults")
    for point in dice.sample(POINTS, 4):
        faults.add(point, "kill", hit=dice.randint(1, 4))
    settings = {
        "holdfast.epoch.max-rows": str(dice.choice([20, 40])),
        "holdfast.state.local-dir": str(tmp_path / "local"),
        "holdfast.checkpoint.upload-wait": "60 s",
    }
    for _ in range(5):
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM, str(tmp_path), json.dumps(settings)],
            env={**os.environ, **faults.environment, "PYTHONPATH": os.pathsep.join(sys.path)},
            timeout=120,
            check=False,
            capture_output=True,
        )
        assert done.returncode in (0, -signal.SIGKILL), done.stderr.decode()[-4000:]
        if done.returncode == 0:
            break
    assert done.returncode == 0
    assert not faults.not_reached()
    audit(tmp_path, FILES, ROWS)
