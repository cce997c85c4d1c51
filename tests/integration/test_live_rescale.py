"""A job on Spark that is rescaled while it runs, over a Python worker that is killed in the middle of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.common import Types, WatermarkStrategy
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.testing.chaos.processes import wait_until
from tests.integration.programs import PAIR, Scripted, environment, published
from tests.job.counting import count, counts_of
from tests.kit.faults import FaultPlan

KEYS = 40
EPOCHS = [[(row % KEYS, row) for row in range(first, first + 60)] for first in range(0, 1_800, 60)]


@pytest.mark.slow
def test_rows_are_exact_over_another_parallelism_and_a_killed_worker(spark: Any, tmp_path: Path) -> None:
    env = environment(
        **{
            "execution.checkpointing.interval": "200 ms",
            "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": "3",
            "restart-strategy.fixed-delay.delay": "10 ms",
            "holdfast.state.local-dir": str(tmp_path / "local"),
        }
    )
    rows = env.from_source(Scripted(EPOCHS), WatermarkStrategy.no_watermarks(), "rows").uid("rows")
    keyed = rows.key_by(lambda row: row[0], Types.LONG())
    counts = keyed.map_with_state(count, state_type=int, output_type=PAIR).uid("counts")
    counts.sink_to(FileSink.json(str(tmp_path / "out"))).uid("out")
    faults = FaultPlan(tmp_path / "faults")
    # Of the second attempt, which is the rescaled one: its store is committed, and nobody hears of it.
    faults.add("task.after-commit", "kill", level=1, slot=2, attempt=2, hit=2)
    with faults.among(spark):
        client = env.execute_async("rescaled")
        history = client.get_history()

        def await_epoch(epoch: int) -> None:
            wait_until(lambda: any(e.epoch >= epoch for e in list(history.epochs)) or None, 120, f"epoch {epoch}")

        await_epoch(3)
        assert client._job.gateway.rescale(3).result(120) == 3
        wait_until(lambda: history.failures or None, 120, "the killed worker")
        await_epoch(history.epochs[-1].epoch + 3)
        assert client._job.gateway.rescale(1).result(120) == 1
        client.get_job_execution_result().result(240)
    assert faults.not_reached() == []
    assert published(tmp_path / "out") == counts_of(EPOCHS)
    kinds = [type(failure.error).__name__ for failure in history.failures]
    assert kinds == ["EpochError"], "only the kill is a failure"
    assert {vertex.parallelism for vertex in client.get_execution_graph().vertices} == {1}
