"""Jobs with operator state that are killed and rescaled.

A checkpoint is taken every so many epochs, and not by time, so that a test knows which epochs lie behind one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast.checkpoint.coordinator import CheckpointCoordinator
from holdfast.checkpoint.snapshot_triggers import SnapshotTrigger
from holdfast.common import Configuration, Encoder, Types, WatermarkStrategy
from holdfast.connectors.sequence import NumberSequenceSource
from holdfast.datastream import StreamExecutionEnvironment
from holdfast.datastream.connectors.file_system import FileSink
from tests.integration.operator_functions import EVENTS, BufferingSink, CountWithOperatorState

#: The parallelisms of the buffering job, and the rows of its epochs. All phases but the last end with a checkpoint.
PHASES = [(2, 40), (3, 40), (1, 40), (5, 400)]
ROWS = 600


@contextmanager
def checkpoint_every(epochs: int) -> Iterator[None]:
    def trigger_if_due(self: CheckpointCoordinator, epoch: int, now: int) -> Any:
        return self.trigger(SnapshotTrigger(), epoch, now) if epoch % epochs == 0 else None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CheckpointCoordinator, "trigger_if_due", trigger_if_due)
        yield


def environment(directory: Path, **settings: str) -> StreamExecutionEnvironment:
    given = {
        "holdfast.job-id": "operator-state",
        "execution.checkpointing.dir": str(directory / "checkpoints"),
        "execution.checkpointing.interval": "1 h",
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "20",
        "restart-strategy.fixed-delay.delay": "10 ms",
        **settings,
    }
    return StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(given))


@checkpoint_every(7)
def count(directory: Path) -> int:
    """Epochs of one row, a checkpoint every seven of them."""
    env = environment(directory, **{"parallelism.default": "1", "holdfast.epoch.max-rows": "1"})
    counted = env.from_collection(EVENTS, Types.LONG()).flat_map(CountWithOperatorState(), Types.STRING())
    sink = FileSink.for_row_format(str(directory / "out"), Encoder.simple_string_encoder()).build()
    counted.uid("count").sink_to(sink).uid("sink")
    return env.execute("count").get_history().restarts


@checkpoint_every(3)
def buffer(directory: Path) -> int:
    """A buffering sink over four parallelisms; all but the last are cancelled on their way."""
    restarts = 0
    for parallelism, rows in PHASES:
        before = newest_checkpoint(directory)
        settings = {"parallelism.default": str(parallelism), "holdfast.epoch.max-rows": str(rows)}
        env = environment(directory, **settings)
        source = NumberSequenceSource(0, ROWS - 1)
        numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers").rebalance()
        lines = FileSink.for_row_format(str(directory / "out"), Encoder.simple_string_encoder()).build()
        numbers.sink_to(BufferingSink(lines, threshold=27)).uid("sink")
        client = env.execute_async("buffer")
        if (parallelism, rows) == PHASES[-1]:
            client.get_job_execution_result().result()
        else:
            wait_for_checkpoint(directory, before + 1)
            client.cancel().result()
        restarts += client.get_history().restarts
    return restarts


def newest_checkpoint(directory: Path) -> int:
    found = (directory / "checkpoints" / "operator-state").glob("chk-*/_metadata")
    return max((int(path.parent.name[4:]) for path in found), default=0)


def wait_for_checkpoint(directory: Path, number: int) -> None:
    deadline = time.monotonic() + 120
    while newest_checkpoint(directory) < number:
        assert time.monotonic() < deadline, f"checkpoint {number} did not complete"
        time.sleep(0.05)
