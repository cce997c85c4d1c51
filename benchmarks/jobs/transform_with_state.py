"""Jobs with PySpark's transformWithState. Variants: ``row`` and ``pandas`` read and update the state for every row, as
the same program for Flink does; ``row-combined`` and ``pandas-combined`` read it once and write it once for each key
of a micro-batch, by hand: the fewest accesses that the API allows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from benchmarks.jobs import spark_streaming
from benchmarks.jobs.checks import CHECKED
from benchmarks.jobs.protocol import JobArguments
from benchmarks.jobs.steps import EMIT_LAST, HOUR_MS, OUTPUTS, STATES, STEPS, State, names


class Stepping(StatefulProcessor):
    """Takes a key's values into its state."""

    def __init__(self, job: str, combined: bool) -> None:
        self._job = job
        self._combined = combined

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("state", STATES[self._job], HOUR_MS if self._job == "dedup" else None)
        self._step = STEPS[self._job]

    def close(self) -> None: ...

    def emitted(self, key: int, values: Iterable[int]) -> Iterator[tuple[int, ...]]:
        return self._once_a_key(key, values) if self._combined else self._every_row(key, values)

    def _every_row(self, key: int, values: Iterable[int]) -> Iterator[tuple[int, ...]]:
        for value in values:
            stored = self._state.get()
            state, row = self._step(stored, key, value)
            self._store(stored, state)
            if row is not None:
                yield row

    def _once_a_key(self, key: int, values: Iterable[int]) -> Iterator[tuple[int, ...]]:
        stored = state = self._state.get()
        rows = []
        for value in values:
            state, row = self._step(state, key, value)
            if row is not None:
                rows.append(row)
        self._store(stored, state)
        yield from rows[-1:] if self._job in EMIT_LAST else rows

    def _store(self, before: State, after: State) -> None:
        if after is None:
            if before is not None:
                self._state.clear()
        elif after is not before:
            self._state.update(after)


class SteppingRows(Stepping):
    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        columns = names(OUTPUTS[self._job])
        for row in self.emitted(key[0], (row.value for row in rows)):
            yield Row(**dict(zip(columns, row, strict=True)))


class SteppingFrames(Stepping):
    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        found = list(self.emitted(key[0], (value for frame in rows for value in frame["value"].tolist())))
        if found:
            yield pd.DataFrame(found, columns=names(OUTPUTS[self._job]))


def main() -> None:
    arguments = JobArguments.parse()
    spark = spark_streaming.session(spark_streaming.ROCKSDB)
    form, _, combined = arguments.variant.partition("-")
    grouped = spark_streaming.table(spark, arguments, "events").groupBy("key")
    processor = (SteppingRows if form == "row" else SteppingFrames)(arguments.job, bool(combined))
    apply = grouped.transformWithState if form == "row" else grouped.transformWithStateInPandas
    expires = arguments.job == "dedup"
    time_mode = "ProcessingTime" if expires else "None"
    results = apply(processor, OUTPUTS[arguments.job], outputMode="Update", timeMode=time_mode)
    outcome = spark_streaming.run(results, arguments, CHECKED[arguments.job], by_the_clock=expires)
    outcome.write(arguments.result)


if __name__ == "__main__":
    main()
