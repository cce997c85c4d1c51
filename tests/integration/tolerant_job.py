"""A job that tolerates failed checkpoints."""

from __future__ import annotations

from pathlib import Path

from holdfast.common import WatermarkStrategy
from holdfast.common.job_client import JobClient
from holdfast.datastream.connectors.file_system import FileSink
from tests.integration.programs import PAIR, CountWithKeyedState, Scripted, environment

ROWS = [(i % 5, i) for i in range(2000)]


def run(directory: Path) -> JobClient:
    """To its end."""
    env = environment(
        **{
            "execution.checkpointing.interval": "10 ms",
            "execution.checkpointing.dir": str(directory / "checkpoints"),
            "execution.checkpointing.tolerable-failed-checkpoints": "3",
            "execution.checkpointing.data-inline-threshold": "0",
        }
    )
    epochs = [ROWS[start : start + 400] for start in range(0, len(ROWS), 400)]
    stream = env.from_source(Scripted(epochs), WatermarkStrategy.no_watermarks(), "script").key_by(lambda row: row[0])
    stream.flat_map(CountWithKeyedState(), PAIR).sink_to(FileSink.json(str(directory / "out")))
    client = env.execute_async("tolerant")
    client.get_job_execution_result().result()
    return client
