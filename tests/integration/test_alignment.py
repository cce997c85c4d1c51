"""Watermark alignment on Spark, over a failure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.datastream import ProcessFunction
from holdfast.datastream.connectors.file_system import FileSink
from tests.integration.programs import environment, published
from tests.job.ticking import PAIR, Ticks, WithWatermark, strategy

SLOW, FAST, DRIFT, CHUNK = range(600), range(0, 600 * 50, 50), 300, 10


class FailsOnce(WithWatermark):
    """Fails at one of the slow rows, in the first attempt."""

    def __init__(self, mark: Path) -> None:
        self._mark = mark

    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        if value == ("slow", 300) and not self._mark.exists():
            self._mark.touch()
            raise ValueError("once")
        return super().process_element(value, ctx)


@pytest.mark.slow
def test_sources_wait_for_each_other_on_spark(spark: Any, tmp_path: Path) -> None:
    env = environment(
        **{
            "execution.checkpointing.interval": "10 ms",
            "execution.checkpointing.dir": str(tmp_path / "chk"),
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.delay": "0 ms",
            "holdfast.epoch.idle-wait": "10 ms",
        }
    ).set_parallelism(1)
    sources = [Ticks("slow", SLOW, CHUNK, an_epoch=100), Ticks("fast", FAST, CHUNK)]
    slow, fast = (env.from_source(each, strategy(DRIFT), each.name).uid(each.name) for each in sources)
    met = slow.union(fast).process(FailsOnce(tmp_path / "failed"), PAIR).uid("met")
    met.sink_to(FileSink.json(str(tmp_path / "out"))).uid("out")
    client = env.execute_async("aligned")
    client.get_job_execution_result().result(120)
    assert client.get_history().restarts == 1
    rows = published(tmp_path / "out")
    assert [time for time, _ in rows] == sorted([*SLOW, *FAST])
    assert all(time > watermark for time, watermark in rows)
    # What is read is not further ahead of what has come of the slow source, while that still has rows.
    leads = [time - watermark for time, watermark in rows if 0 < watermark < SLOW[-1] - CHUNK]
    assert leads and max(leads) <= DRIFT + 100 + 2 * CHUNK * 50
