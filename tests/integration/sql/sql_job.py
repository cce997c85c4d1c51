"""Numbers -> keyed state -> two tables, which tell whether any row was lost or repeated. Runs as a driver program.

The key of a number is the number modulo the keys. The job gives each number its place among those of its key. One table
gets every (key, place), the other one the last place of each key.
"""

from __future__ import annotations

import json
import logging
import sys
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

from holdfast.common import Configuration, Types, WatermarkStrategy
from holdfast.datastream import StreamExecutionEnvironment
from holdfast.datastream.connectors.number_seq import NumberSequenceSource
from holdfast.datastream.connectors.sql import SqlSink
from holdfast.errors import JobEndedError
from tests.integration.kafka.kafka_job import failing_engine
from tests.kit.rescaled import parallelism_of_this_start

PLACES = Types.ROW_NAMED(["k", "place"], [Types.LONG(), Types.LONG()])


def place_of(key: int, seen: int | None) -> tuple[Any, int]:
    place = (seen or 0) + 1
    return (key, place), place


def run(directory: Path, given: dict[str, Any]) -> Any:
    configuration = Configuration.from_dict(
        {
            "holdfast.job-id": "sql",
            "execution.checkpointing.dir": str(directory / "checkpoints"),
            "execution.checkpointing.interval": "10 ms",
            "holdfast.state.local-dir": str(directory / "local"),
            "holdfast.epoch.idle-wait": "10 ms",
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": "1000",
            "restart-strategy.fixed-delay.delay": "50 ms",
            "parallelism.default": parallelism_of_this_start(),
            **given["settings"],
        }
    )
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    numbers = NumberSequenceSource(0, given["rows"] - 1)
    rows = env.from_source(numbers, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
    keys = given["keys"]
    keyed = rows.map(lambda number: number % keys, Types.LONG()).key_by(lambda key: key, Types.LONG())
    places = keyed.map_with_state(place_of, state_type=int, output_type=PLACES).uid("places")
    places.sink_to(SqlSink.insert(given["url"], given["all"])).uid("all")
    places.sink_to(SqlSink.upsert(given["url"], given["last"], ["k"])).uid("last")
    return env.execute("sql").get_history()


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    logging.getLogger("py4j").setLevel(logging.ERROR)
    where, arguments = Path(sys.argv[1]), json.loads(sys.argv[2])
    given = arguments.get("in_process")
    restarts = 0
    # A driver that was killed may have got to the end of the job.
    with failing_engine(**given).installed() if given else nullcontext(), suppress(JobEndedError):
        restarts = run(where, arguments).restarts
    print(f"FINISHED restarts={restarts}", flush=True)
