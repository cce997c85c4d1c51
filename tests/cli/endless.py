"""A program for the command line: counts rows of a script, without Spark, until somebody ends it.

    endless.py DIRECTORY EPOCHS
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from holdfast.common import Configuration, Types, WatermarkStrategy
from holdfast.datastream import StreamExecutionEnvironment
from tests.integration.programs import PAIR, Scripted
from tests.spark.in_process import EPOCHS, WatchedSink, count, install


def main() -> None:
    install(pytest.MonkeyPatch())
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
    counts = keyed.map_with_state(count, state_type=int, output_type=PAIR).uid("count")
    counts.sink_to(WatchedSink(directory / "out")).uid("sink")
    env.execute("counting")


if __name__ == "__main__":
    main()
