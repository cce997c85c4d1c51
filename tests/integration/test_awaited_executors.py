"""The wait for an executor in the place of a lost one, on a real standalone cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.kit.cluster import StandaloneCluster
from tests.kit.driver import DriverProgram

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).with_name("awaiting_program.py")


def test_it_ends_when_the_cluster_has_no_more(tmp_path: Path) -> None:
    """An executor whose worker lives is replaced, and waited for. One whose host is gone is not."""
    with StandaloneCluster(workers=2) as cluster:
        settings = json.dumps(cluster.settings)
        with DriverProgram(PROGRAM, [settings], output=tmp_path / "driver.log") as driver:
            driver.wait_for_line("^0: two are there", 120)
            cluster.kill_executor(0)
            driver.wait_for_line("^after a loss there are 2", 120)
            driver.wait_for_line("^1: two are there", 60)
            cluster.kill_worker(1)
            driver.wait_for_line("^after a loss there are 1", 60)
            assert driver.wait(60) == 0, driver.output
            assert "none of the 1 workers that are alive has 1 cores and 1024 MB free" in driver.output
