"""The fault plan writes what failpoints read, and reads what they leave."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast import failpoints
from tests.kit.faults import FaultPlan


def test_a_plan_acts_and_proves_it(tmp_path: Path) -> None:
    plan = FaultPlan(tmp_path / "faults")
    seen = plan.add("commit", "touch", hit=2, epoch=3)
    never = plan.add("restore", "kill")
    failpoints.install(plan.path)
    try:
        failpoints.failpoint("commit", epoch=3, subtask=0)
        assert plan.reached(seen) is None
        failpoints.failpoint("commit", epoch=3, subtask=1)
    finally:
        failpoints.install(None)
    assert plan.wait(seen, 1) == {"pid": os.getpid(), "point": "commit", "facts": {"epoch": 3, "subtask": 1}}
    assert plan.not_reached() == [never]


def test_waiting_for_a_point_that_nobody_reaches_names_it(tmp_path: Path) -> None:
    plan = FaultPlan(tmp_path)
    trigger = plan.add("upload", "touch")
    with pytest.raises(TimeoutError, match="upload"):
        plan.wait(trigger, 0.05)
