"""Jobs with PySpark's applyInPandasWithState, whose state is read once and written once for each key of a micro-batch
by Spark, whatever the function does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql.streaming.state import GroupState

from benchmarks.jobs import spark_streaming
from benchmarks.jobs.checks import CHECKED
from benchmarks.jobs.protocol import JobArguments
from benchmarks.jobs.steps import HOUR_MS, OUTPUTS, STATES, STEPS, names


class Function:
    """The steps of a job over the values of a key."""

    def __init__(self, job: str) -> None:
        self._job = job

    def __call__(self, key: Any, frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        step, rows = STEPS[self._job], []
        if state.hasTimedOut:
            state.remove()
            return
        for frame in frames:
            for value in frame["value"].tolist():
                after, row = step(state.get if state.exists else None, key[0], value)
                if after is None:
                    state.remove()
                else:
                    state.update(after)
                if row is not None:
                    rows.append(row)
        if self._job == "dedup":
            state.setTimeoutDuration(HOUR_MS)
        if rows:
            yield pd.DataFrame(rows, columns=names(OUTPUTS[self._job]))


def main() -> None:
    arguments = JobArguments.parse()
    spark = spark_streaming.session(spark_streaming.ROCKSDB)
    job = arguments.job
    expires = job == "dedup"
    timeout = "ProcessingTimeTimeout" if expires else "NoTimeout"
    function = Function(job)

    def apply(key: Any, frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        return function(key, frames, state)

    grouped = spark_streaming.table(spark, arguments, "events").groupBy("key")
    results = grouped.applyInPandasWithState(apply, OUTPUTS[job], STATES[job], "update", timeout)
    spark_streaming.run(results, arguments, CHECKED[job], by_the_clock=expires).write(arguments.result)


if __name__ == "__main__":
    main()
