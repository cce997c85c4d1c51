"""Operator state on Spark: workers are killed at chosen epochs, subtasks come and go, and results are exact."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.common import Types
from holdfast.connectors.discard import DiscardSink
from tests.integration.operator_functions import BETWEEN_ONES, NotingMap, NotingSink, NotingSource, calls
from tests.integration.operator_state_job import PHASES, ROWS, buffer, count
from tests.integration.programs import environment
from tests.kit.faults import FaultPlan


def run(job: Callable[[Path], int], directory: Path, spark: Any, faults: FaultPlan) -> int:
    """Run a job to its end; how often it was restarted."""
    with faults.among(spark):
        restarts = job(directory)
    assert not faults.not_reached()
    return restarts


def lines(directory: Path) -> list[str]:
    files = [path for path in directory.glob("*") if path.is_file() and path.name[0] not in "._"]
    return sorted(line for path in files for line in path.read_text().splitlines())


@pytest.mark.slow
def test_count_with_operator_state_survives_kills(spark: Any, tmp_path: Path) -> None:
    """Before the first checkpoint, between two, in the middle of one, and right behind one."""
    faults = FaultPlan(tmp_path / "faults")
    faults.add("task.before-commit", "kill", epoch=4)
    faults.add("task.start", "kill", epoch=10)
    faults.add("task.uploading", "kill", epoch=14)
    faults.add("task.after-commit", "kill", epoch=15)
    assert run(count, tmp_path, spark, faults) == 4
    assert lines(tmp_path / "out") == BETWEEN_ONES


@pytest.mark.slow
def test_a_buffering_sink_over_kills_and_rescalings(spark: Any, tmp_path: Path) -> None:
    faults = FaultPlan(tmp_path / "faults")
    for epoch, point in ((2, "before-commit"), (6, "uploading"), (8, "after-commit"), (10, "outputs-sent")):
        faults.add(f"task.{point}", "kill", epoch=epoch)
    assert run(buffer, tmp_path, spark, faults) >= 3
    assert lines(tmp_path / "out") == sorted(map(str, range(ROWS)))
    assert [parallelism for parallelism, _ in PHASES] == [2, 3, 1, 5]


@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_the_order_of_calls_along_a_chain(tmp_path: Path) -> None:
    log = tmp_path / "calls"
    env = environment(
        **{
            "parallelism.default": "1",
            "execution.checkpointing.interval": "10 ms",
            "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
        }
    ).set_parallelism(1)
    source = env.add_source(NotingSource("source", log, ["a", "b"]), "source", Types.STRING())
    mapped = source.map(NotingMap("first", log), Types.STRING()).map(NotingMap("second", log), Types.STRING())
    mapped.sink_to(NotingSink("sink", log, DiscardSink()))
    env.execute("noted")
    head_to_tail = ["source", "first", "second", "sink"]
    noted = calls(log)
    started = [f"{name} {call}" for name in head_to_tail[::-1] for call in ("initialize_state", "open")]
    assert noted[:8] == started
    assert [f"{name} close" for name in head_to_tail[::-1]] == noted[-4:]
    for call, order in (
        ("prepare_snapshot_pre_barrier", head_to_tail),
        ("snapshot_state", head_to_tail[::-1]),
        ("notify_checkpoint_complete", head_to_tail[::-1]),
        ("finish", head_to_tail),
    ):
        found = [line.split()[0] for line in noted if line.endswith(f" {call}")]
        assert found and found == order * (len(found) // 4), call
    prepared = noted.index("sink prepare_snapshot_pre_barrier")
    assert prepared < noted.index("sink snapshot_state") < noted.index("source snapshot_state")
    finished = noted.index("sink finish")
    assert finished < len(noted) - 1 - noted[::-1].index("sink snapshot_state"), "a last checkpoint follows the end"
    assert "sink row source at the end" in noted and "sink row second before the barrier" in noted
