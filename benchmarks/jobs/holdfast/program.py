"""Runs a job on Holdfast.

The variant is a backend, with ``-unchecked`` for a run without checkpoints, ``-public`` for one by Spark's public API
alone, ``-without-NAME`` for one without an acceleration, and behind a colon the form of the program where a job has
several: ``lmdb:aggregate`` runs ``totals:aggregate``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from benchmarks.jobs.checks import CHECKED
from benchmarks.jobs.holdfast.average import average
from benchmarks.jobs.holdfast.dedup import dedup
from benchmarks.jobs.holdfast.enrichment import enrichment
from benchmarks.jobs.holdfast.final_sink import FinalSink
from benchmarks.jobs.holdfast.inputs import Inputs
from benchmarks.jobs.holdfast.minutes import minutes, minutes_by_column, minutes_by_spark
from benchmarks.jobs.holdfast.nexmark import highest_bid, hot_items, hot_items_by_column, new_users
from benchmarks.jobs.holdfast.sessions import sessions
from benchmarks.jobs.holdfast.sink import CheckingSink
from benchmarks.jobs.holdfast.totals import aggregated, aggregated_by_spark, by_batch, totals
from benchmarks.jobs.protocol import PARALLELISM, SPARK_SETTINGS, Checkpoint, Epoch, JobArguments, Outcome
from benchmarks.oracle import RULES
from holdfast.common import Configuration
from holdfast.common.job_client import JobClient
from holdfast.datastream import DataStream, StreamExecutionEnvironment

Program = Callable[[Inputs], DataStream]

#: By job, and by job and form.
PROGRAMS: Mapping[str, Program] = {
    "average": average,
    "totals": totals,
    "totals:aggregate": aggregated,
    "totals:stream": aggregated_by_spark,
    "totals:batch": by_batch,
    "dedup": dedup,
    "sessions": sessions,
    "enrichment": enrichment,
    "minutes": minutes,
    "minutes:aggregate": minutes_by_column,
    "minutes:stream": minutes_by_spark,
    "q5": hot_items,
    "q5:aggregate": hot_items_by_column,
    "q7": highest_bid,
    "q8": new_users,
}

#: Programs that emit the totals of a key when they like; the last of each key are checked.
EMIT_TOTALS = frozenset({"totals:aggregate", "totals:stream", "totals:batch"})

#: Rows that a job reads beside those of its tables, in its first epochs.
BESIDE = {"enrichment": RULES}


#: By what a variant says of accelerations.
_INTERNALS: Mapping[str, Mapping[str, str]] = {
    "public": {"holdfast.spark.internals": "off"},
    "without-worker-daemon": {"spark.python.daemon.module": "pyspark.daemon"},
    **{
        f"without-{name}": {"holdfast.spark.internals.without": name}
        for name in ("kept-plans", "half-aggregations", "file-manager")
    },
}


def configuration(arguments: JobArguments, spark_settings: Mapping[str, str] = SPARK_SETTINGS) -> Configuration:
    backend, _, how = arguments.variant.partition(":")[0].partition("-")
    config = Configuration()
    for name, value in spark_settings.items():
        config.set_string(name, value)
    config.set_string("parallelism.default", str(PARALLELISM))
    config.set_string("state.backend.type", backend)
    # A run with a restart in it is no measurement.
    config.set_string("restart-strategy.type", "none")
    config.set_string("holdfast.state.local-dir", str(arguments.scratch / "state"))
    if arguments.live:
        # An epoch reads whatever has come, as the peers' micro-batches do.
        config.set_string("holdfast.epoch.idle-wait", "20 ms")
        config.set_string("holdfast.epoch.max-idle-wait", "20 ms")
        config.set_string("holdfast.epoch.target-latency", "0 ms")
    else:
        # Epochs of the same size as the peers' micro-batches, however slow the machine.
        config.set_string("holdfast.epoch.max-rows", str(arguments.epoch_rows))
        config.set_string("holdfast.epoch.max-time", "10 min")
        config.set_string("holdfast.stream.available-now", "true")
    for name, value in _INTERNALS.get(how, {}).items():
        config.set_string(name, value)
    if how != "unchecked":
        # Shorter than any epoch: a checkpoint is due at each of them, as Spark commits every micro-batch.
        config.set_string("execution.checkpointing.interval", "10 ms")
        config.set_string("execution.checkpointing.dir", str(arguments.scratch / "checkpoints"))
    return config


def start(arguments: JobArguments, config: Configuration) -> tuple[JobClient, CheckingSink]:
    counts = arguments.scratch / "counts"
    counts.mkdir(exist_ok=True)
    name = arguments.job + "".join(arguments.variant.partition(":")[1:])
    sink = (FinalSink if name in EMIT_TOTALS else CheckingSink)(counts, CHECKED[arguments.job])
    env = StreamExecutionEnvironment.get_execution_environment(config)
    PROGRAMS[name](Inputs(env, arguments)).sink_to(sink).uid("check")
    return env.execute_async(arguments.job), sink


def run(arguments: JobArguments) -> Outcome:
    client, sink = start(arguments, configuration(arguments))
    if arguments.live:
        _read_all(client, arguments.expected_rows)
        client.cancel().result()
    else:
        client.get_job_execution_result().result()
    records = [record for record in client.get_history().epochs if record.rows]
    epochs = _of_tables(
        [Epoch(record.epoch, record.rows, record.started, record.finished) for record in records],
        BESIDE.get(arguments.job, 0),
    )
    taken = client.get_checkpoint_statistics().completed_numbers
    checkpoints = [Checkpoint(one.duration, one.bytes_written) for one in taken]
    return Outcome(epochs, *sink.committed(), checkpoints)


def _of_tables(epochs: list[Epoch], beside: int) -> list[Epoch]:
    """The epochs without rows that are read first and are not of the tables."""
    found = []
    for epoch in epochs:
        other = min(beside, epoch.rows)
        beside -= other
        if epoch.rows > other:
            found.append(replace(epoch, rows=epoch.rows - other))
    return found


def _read_all(client: JobClient, rows: int) -> None:
    while client.is_running() and sum(record.rows for record in client.get_history().epochs) < rows:
        time.sleep(0.05)


def main() -> None:
    arguments = JobArguments.parse()
    run(arguments).write(arguments.result)


if __name__ == "__main__":
    main()
