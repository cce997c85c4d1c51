"""A program for the command line: counts rows of a script, without Spark, until somebody ends it.

    endless.py DIRECTORY EPOCHS [untyped]

``untyped``: the type of its counts is left open, so that they are pickled.
"""

from __future__ import annotations

import sys
from pathlib import Path

from holdfast.common import Configuration, Types, WatermarkStrategy
from holdfast.datastream import StreamExecutionEnvironment
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import PAIR, Scripted
from tests.job.counting import EPOCHS, WatchedSink, count


def main() -> None:
    directory, epochs = Path(sys.argv[1]), EPOCHS[: int(sys.argv[2])]
    given = {
        "holdfast.state.local-dir": str(directory / "local"),
        "holdfast.epoch.idle-wait": "20 ms",
        "holdfast.checkpoint.upload-wait": "60 s",
        "execution.checkpointing.dir": str(directory / "chk"),
    }
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(given))
    source = env.from_source(Scripted(epochs, ends=False), WatermarkStrategy.no_watermarks(), "script").uid("source")
    keyed = source.key_by(lambda row: row[0], Types.LONG())
    state_type = None if "untyped" in sys.argv else int
    counts = keyed.map_with_state(count, state_type=state_type, output_type=PAIR).uid("count")
    counts.sink_to(WatchedSink(directory / "out")).uid("sink")
    env.execute("counting")


if __name__ == "__main__":
    with InProcessEngine().installed():
        main()
