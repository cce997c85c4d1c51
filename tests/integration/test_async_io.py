"""Asynchronous functions on Spark: workers die in the middle of calls and of epochs, and every row comes out once."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from holdfast.common import Time, Types, WatermarkStrategy
from holdfast.datastream import AsyncDataStream, AsyncFunction
from holdfast.datastream.connectors.file_system import FileSink
from tests.integration.audited_job import UnevenNumbers
from tests.integration.programs import PAIR, environment, published
from tests.kit.faults import FaultPlan

pytestmark = [pytest.mark.usefixtures("spark"), pytest.mark.slow]

ROWS = 1_500


class Squares(AsyncFunction[int, tuple[int, int]]):
    """A number and its square, after a while. The process dies once, while other calls are under way."""

    def __init__(self, directory: Path, dies_at: int) -> None:
        self.marker = directory / f"died-at-{dies_at}"
        self.dies_at = dies_at

    def open(self, runtime_context: Any) -> None:
        self.running = 0

    async def async_invoke(self, value: int) -> list[tuple[int, int]]:
        self.running += 1
        await asyncio.sleep(0.001)
        if value == self.dies_at:
            await self.die()
        self.running -= 1
        return [(value, value * value)]

    async def die(self) -> None:
        while self.running < 5:
            await asyncio.sleep(0.001)
        with suppress(FileExistsError):
            self.marker.touch(exist_ok=False)
            os.kill(os.getpid(), signal.SIGKILL)


class Roots(AsyncFunction[tuple[int, int], tuple[int, int]]):
    """The way back, of which every tenth call takes too long. On a keyed stream there are keys beside the rows."""

    def __init__(self, keyed: bool) -> None:
        self.keyed = keyed

    async def async_invoke(self, value: Any) -> list[tuple[int, int]]:
        number, square = value.f1 if self.keyed else value
        if number % 10 == 0:
            await asyncio.Event().wait()
        return [(square, round(square**0.5))]

    def timeout(self, value: Any) -> list[tuple[int, int]]:
        number, square = value.f1 if self.keyed else value
        return [(square, -number)]


@pytest.mark.parametrize(("kind", "keyed"), [("unordered", False), ("ordered", True)])
def test_workers_killed_in_the_middle_of_calls(spark: Any, tmp_path: Path, kind: str, keyed: bool) -> None:
    faults = FaultPlan(tmp_path / "faults")
    faults.add("task.before-commit", "kill", hit=9)
    faults.add("task.after-commit", "kill", hit=20)
    settings = {
        "execution.checkpointing.dir": str(tmp_path / "chk"),
        "execution.checkpointing.interval": "300 ms",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "10",
        "restart-strategy.fixed-delay.delay": "10 ms",
    }
    env = environment(**settings)
    numbers = env.from_source(UnevenNumbers(ROWS, ROWS // 8), WatermarkStrategy.no_watermarks(), "numbers")
    wait = getattr(AsyncDataStream, f"{kind}_wait")
    squares = wait(numbers, Squares(tmp_path, ROWS // 2), Time.seconds(60), 20, PAIR)
    exchanged = squares.key_by(lambda row: row[0] % 7, Types.LONG()) if keyed else squares.rebalance()
    roots = wait(exchanged, Roots(keyed), Time.milliseconds(30), 50, PAIR)
    roots.sink_to(FileSink.json(str(tmp_path / "out")))
    with faults.among(spark):
        env.execute()
    assert not faults.not_reached() and (tmp_path / f"died-at-{ROWS // 2}").exists()
    expected = [(n * n, -n if n % 10 == 0 else n) for n in range(ROWS)]
    assert published(tmp_path / "out") == sorted(expected)
