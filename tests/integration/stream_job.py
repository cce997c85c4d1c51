"""Two streams of Spark's, counted together, and handed to a writer of Spark's. Runs as a driver program.

files, one for each micro-batch  ->  union -> key_by(v % 7) -> count -> sink "out"
rate-micro-batch                 ->                                  -> for_each_batch
"""

from __future__ import annotations

import json
import logging
import sys
from collections import Counter, defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Any

from holdfast.common import Configuration, Row, Types
from holdfast.datastream import StreamExecutionEnvironment
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.errors import JobEndedError
from holdfast.spark.session import obtain_session
from tests.integration.programs import published
from tests.kit.rescaled import parallelism_of_this_start

ROWS, KEYS = 25, 7
PAIR = Types.ROW_NAMED(["origin", "v"], [Types.STRING(), Types.LONG()])
OUT = Types.ROW_NAMED(["origin", "v", "n"], [Types.STRING(), Types.LONG(), Types.LONG()])


def count(row: Any, seen: int | None) -> tuple[Row, int]:
    seen = (seen or 0) + 1
    return Row(origin=row.origin, v=row.v, n=seen), seen


def write_input(directory: Path, files: int) -> None:
    directory.mkdir()
    for number in range(files):
        values = range(number * ROWS, (number + 1) * ROWS)
        (directory / f"{number}.json").write_text("\n".join(json.dumps({"v": value}) for value in values))


def session() -> Any:
    return obtain_session({"spark.master": "local[2]", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"})


def streaming_environment(where: Path, job_id: str) -> StreamExecutionEnvironment:
    """The environment of a job that reads what there is of its streams, over any number of restarts."""
    return StreamExecutionEnvironment.get_execution_environment(
        Configuration.from_dict(
            {
                "holdfast.job-id": job_id,
                "holdfast.state.local-dir": str(where / "local"),
                "holdfast.stream.available-now": "true",
                "execution.checkpointing.dir": str(where / "chk"),
                "execution.checkpointing.interval": "10 ms",
                "restart-strategy.type": "fixed-delay",
                "restart-strategy.fixed-delay.attempts": "50",
                "restart-strategy.fixed-delay.delay": "10 ms",
            }
        )
    ).set_parallelism(int(parallelism_of_this_start()))


def run(where: Path) -> None:
    spark = session()
    files = spark.readStream.schema("v long").option("maxFilesPerTrigger", 1).json(str(where / "in"))
    rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 30).load()
    env = streaming_environment(where, "streams")
    of_files = env.from_data_frame(files, "files").uid("files").map(lambda row: Row(origin="file", v=row.v), PAIR)
    of_rate = env.from_data_frame(rate, "rate").uid("rate").map(lambda row: Row(origin="rate", v=row.value), PAIR)
    keyed = of_files.union(of_rate).key_by(lambda row: row.v % KEYS, Types.LONG())
    counts = keyed.map_with_state(count, state_type=int, output_type=OUT).uid("count")
    counts.sink_to(FileSink.json(str(where / "out"))).uid("sink")

    def write(rows: Any, batch_id: int) -> None:
        rows.write.mode("overwrite").json(str(where / "batches" / str(batch_id)))
        # Append the call, so that a second one of the same id is seen.
        with (where / "calls").open("a") as calls:
            values = sorted((row.origin, row.v, row.n) for row in rows.collect())
            calls.write(json.dumps([batch_id, values]) + "\n")

    counts.for_each_batch(write).uid("batches")
    job = env.execute_async("streams")
    job.get_job_execution_result().result()


def audit(where: Path, files: int) -> None:
    """Every row of both streams was counted once, and both sinks got the same."""
    rows = published(where / "out")
    by_origin = defaultdict(list)
    by_key: dict[int, list[int]] = defaultdict(list)
    for origin, value, place in rows:
        by_origin[origin].append(value)
        by_key[value % KEYS].append(place)
    assert sorted(by_origin["file"]) == list(range(files * ROWS))
    assert sorted(by_origin["rate"]) == list(range(len(by_origin["rate"])))
    assert by_origin["rate"]
    assert all(sorted(places) == list(range(1, len(places) + 1)) for places in by_key.values())
    written = [row for batch in (where / "batches").iterdir() for row in published(batch)]
    assert sorted(written) == rows


def calls(where: Path) -> Counter[int]:
    """How often each id came. It must have come with the same rows each time, and ids must grow."""
    told = [json.loads(line) for line in (where / "calls").read_text().splitlines()]
    rows: dict[int, Any] = {}
    for batch_id, values in told:
        assert rows.setdefault(batch_id, values) == values, batch_id
    ids = [batch_id for batch_id, _ in told]
    assert ids == sorted(ids)
    return Counter(ids)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    # A driver that was killed may have got to the end of the job.
    with suppress(JobEndedError):
        run(Path(sys.argv[1]))
    print("FINISHED")
