"""A stream of Spark's, counted by key. A worker is killed where the directory asks for it by a file ``kill``.

``stream_job.py DIRECTORY OUT until ROWS``       cancels the job when so many rows are published; its checkpoints stay
``stream_job.py DIRECTORY OUT from CHECKPOINT``  another job goes on from there, to the end of what there is
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from holdfast.common import Row, Types
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.spark.session import obtain_session
from holdfast.testing.chaos.processes import wait_until
from tests.integration.programs import environment, published

OUT = Types.ROW_NAMED(["k", "n"], [Types.LONG(), Types.LONG()])

where, output, order, told = Path(sys.argv[1]), *sys.argv[2:]
asked = str(where / "kill")


def count(row: Any, seen: int | None) -> tuple[Row, int]:
    seen = (seen or 0) + 1
    return Row(k=row.k, n=seen), seen


def die_if_asked(row: Any) -> Any:
    if row.victim and os.path.exists(asked):
        os.unlink(asked)
        os.kill(os.getpid(), signal.SIGKILL)
    return row


if __name__ == "__main__":
    settings = {
        "holdfast.job-id": output,
        "holdfast.state.local-dir": str(where / "local"),
        "execution.checkpointing.dir": str(where / "checkpoints"),
        "execution.checkpointing.interval": "10 ms",
        "execution.checkpointing.num-retained": "30",
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "3",
        "restart-strategy.fixed-delay.delay": "10 ms",
    }
    if order == "from":
        settings |= {"execution.state-recovery.path": told, "holdfast.stream.available-now": "true"}
    files = obtain_session({}).readStream.schema("k long, victim boolean").option("maxFilesPerTrigger", 1)
    env = environment(**settings)
    rows = env.from_data_frame(files.json(str(where / "in")), "files").uid("files").map(die_if_asked).uid("victim")
    counts = rows.key_by(lambda row: row.k, Types.LONG()).map_with_state(count, state_type=int, output_type=OUT)
    counts.uid("count").sink_to(FileSink.json(str(where / output))).uid("sink")
    job = env.execute_async("streams")

    def enough() -> bool | None:
        return not job.is_running() or len(published(where / output)) >= int(told) or None

    if order == "until":
        wait_until(enough, 90, f"{told} published rows")
        job.cancel().result(60)
    else:
        job.get_job_execution_result().result(90)
    print(f"restarts={job.get_history().restarts}")
