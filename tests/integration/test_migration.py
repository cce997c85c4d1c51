"""A job on Spark that is upgraded: other values, another name, other keys and another parallelism, and a kill."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.state.outcomes import Fate
from tests.integration.migrated_program import KillsOnce, build
from tests.integration.programs import environment, published

pytestmark = [pytest.mark.usefixtures("spark"), pytest.mark.slow]

KEYS = 200
ROWS = [(key, 0) for key in range(KEYS)]


def settings(directory: Path, **changes: str) -> dict[str, str]:
    return {
        "execution.checkpointing.interval": "10 ms",
        "execution.checkpointing.dir": str(directory / "checkpoints"),
        "holdfast.epoch.idle-wait": "50 ms",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "3",
        "restart-strategy.fixed-delay.delay": "10 ms",
        **changes,
    }


def wait_for_rows(client: Any, directory: Path, rows: int) -> None:
    deadline = time.monotonic() + 90
    while len(published(directory / "out")) < rows and time.monotonic() < deadline:
        assert client.get_job_status().result().name not in ("FAILED", "FINISHED")
        time.sleep(0.1)
    assert len(published(directory / "out")) == rows


def test_an_upgraded_job_is_killed_while_it_migrates_and_goes_on_exactly(tmp_path: Path) -> None:
    first = environment(**settings(tmp_path))
    build(first, tmp_path, [ROWS, ROWS])
    client = first.execute_async("first version")
    wait_for_rows(client, tmp_path, 2 * KEYS)
    savepoint = client.stop_with_savepoint(False, str(tmp_path / "savepoints")).result(60)
    client.get_job_execution_result().result(60)

    marker = tmp_path / "killed"
    second = environment(**settings(tmp_path, **{"execution.state-recovery.path": savepoint}))
    build(second, tmp_path, [ROWS, ROWS, ROWS], KillsOnce(marker), parallelism=3, ends=True)
    plan = holdfast.plan_restore(second, savepoint)
    assert plan.possible and plan.operator("counts").state("count").fate is Fate.MIGRATED
    client = second.execute_async("second version")
    client.get_job_execution_result().result(120)
    assert marker.exists()
    assert published(tmp_path / "out") == sorted((key, place) for key in range(KEYS) for place in (1, 2, 3))
