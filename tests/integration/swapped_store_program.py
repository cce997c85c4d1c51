"""A job whose local stores are put back between two epochs, in a session that the program makes itself, which tells
Spark to try tasks and stages four times: ``swapped_store_program.py DIRECTORY``.

Prints how the job went.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from holdfast.common import WatermarkStrategy
from holdfast.datastream import MapFunction
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.spark.accelerations import WORKER_DAEMON
from tests.integration.programs import PAIR, CountWithKeyedState, Scripted, environment

ROWS = [(i % 5, i) for i in range(60)]
OF_EPOCH = 10
#: The rows with which the stores are copied, and with which they are put back. Level 0 has ended when level 1 begins.
COPY, SWAP = ROWS[OF_EPOCH], ROWS[3 * OF_EPOCH]


class PutsStoresBack(MapFunction):
    """A map in level 0: when it sees a row for the first time, the stores of level 1 become those of before."""

    def __init__(self, directory: Path) -> None:
        self.local, self.copy, self.done = directory / "local", directory / "copy", directory / "done"

    def map(self, value: tuple[int, int]) -> tuple[int, int]:
        if value == COPY and not self.copy.exists():
            for store in self.stores():
                shutil.copytree(store, self.copy / store.relative_to(self.local))
        if value == SWAP and not self.done.exists():
            self.done.touch()
            for store in self.stores():
                shutil.rmtree(store)
                shutil.copytree(self.copy / store.relative_to(self.local), store)
        return value

    def stores(self) -> list[Path]:
        """The stores of the first attempt: ``<store>/<attempt>/<operator>-<subtask>``."""
        return [path for path in self.local.glob("*/1/*-*") if not path.name.startswith("level-")]


def main(directory: Path) -> None:
    settings = {
        "spark.master": "local[2,4]",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.task.maxFailures": "4",
        "spark.stage.maxConsecutiveAttempts": "4",
        "spark.python.daemon.module": WORKER_DAEMON,
        # Each epoch takes its state up from the disk.
        "spark.python.worker.reuse": "false",
    }
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    env = environment(
        **{
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": "2",
            "restart-strategy.fixed-delay.delay": "0 ms",
            "execution.checkpointing.interval": "10 ms",
            "execution.checkpointing.dir": str(directory / "checkpoints"),
            "holdfast.state.local-dir": str(directory / "local"),
        }
    )
    epochs = [ROWS[start : start + OF_EPOCH] for start in range(0, len(ROWS), OF_EPOCH)]
    rows = env.from_source(Scripted(epochs), WatermarkStrategy.no_watermarks(), "script")
    # One subtask, as the source has: the rows of a key stay in their order.
    keyed = rows.map(PutsStoresBack(directory), PAIR).set_parallelism(1).key_by(lambda row: row[0])
    keyed.flat_map(CountWithKeyedState(), PAIR).sink_to(FileSink.json(str(directory / "out")))
    client = env.execute_async("swapped")
    client.get_job_execution_result().result()
    tracker = session.sparkContext.statusTracker()
    infos = [tracker.getStageInfo(number) for number in range(10_000)]
    failed = [info.name for info in infos if info is not None and (info.numFailedTasks or info.currentAttemptId)]
    history = client.get_history()
    failures = [[type(failure.error).__name__, str(failure.error)] for failure in history.failures]
    print(json.dumps({"failures": failures, "restarts": history.restarts, "tried again": failed}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
