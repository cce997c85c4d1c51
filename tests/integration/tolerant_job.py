"""A job that tolerates failed checkpoints. Runs as a driver program, and tells of its checkpoints in a file."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from holdfast.common import WatermarkStrategy
from holdfast.datastream.connectors.file_system import FileSink
from tests.integration.programs import PAIR, CountWithKeyedState, Scripted, environment

if __name__ == "__main__":
    where = Path(sys.argv[1])
    rows = [(i % 5, i) for i in range(2000)]
    env = environment(
        **{
            "spark.master": "local[2]",
            "execution.checkpointing.interval": "10 ms",
            "execution.checkpointing.dir": str(where / "checkpoints"),
            "execution.checkpointing.tolerable-failed-checkpoints": "3",
            "execution.checkpointing.data-inline-threshold": "0",
        }
    )
    epochs = [rows[start : start + 400] for start in range(0, len(rows), 400)]
    stream = env.from_source(Scripted(epochs), WatermarkStrategy.no_watermarks(), "script").key_by(lambda row: row[0])
    stream.flat_map(CountWithKeyedState(), PAIR).sink_to(FileSink.json(str(where / "out")))
    client = env.execute_async("tolerant")
    client.get_job_execution_result().result()
    counts = client.get_checkpoint_statistics().counts
    told = {"failed": counts.failed, "completed": counts.completed, "restarts": client.get_history().restarts}
    (where / "told.json").write_text(json.dumps(told))
