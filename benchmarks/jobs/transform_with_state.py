"""The average of every three values per key with PySpark's transformWithState, in its row form and its pandas form.

Each call reads the state once and writes it once, however many rows the key has in the micro-batch: the fewest
accesses that the API allows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, GroupedData, Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from benchmarks.jobs import streaming
from benchmarks.jobs.protocol import JobArguments

STATE = "sum BIGINT, count BIGINT"
OUTPUT = "key BIGINT, average BIGINT"


class Averages(StatefulProcessor):
    """State (sum, count); every third value of a key emits ``sum // count`` and clears it."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("average", STATE)

    def close(self) -> None: ...

    def averages(self, values: Iterator[int]) -> list[int]:
        """Take the current key's values into its state; what is to be emitted."""
        stored = self._state.get()
        total, count = stored if stored is not None else (0, 0)
        emitted = []
        for value in values:
            total += value
            count += 1
            if count == 3:
                emitted.append(total // count)
                total, count = 0, 0
        if count:
            self._state.update((total, count))
        elif stored is not None:
            self._state.clear()
        return emitted


class RowAverages(Averages):
    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        for average in self.averages(row.value for row in rows):
            yield Row(key=key[0], average=average)


class PandasAverages(Averages):
    def handleInputRows(
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,
    ) -> Iterator[pd.DataFrame]:
        averages = self.averages(value for frame in rows for value in frame["value"].tolist())
        if averages:
            yield pd.DataFrame({"key": [key[0]] * len(averages), "average": averages})


def with_rows(grouped: GroupedData) -> DataFrame:
    return grouped.transformWithState(RowAverages(), OUTPUT, outputMode="Update", timeMode="None")


def with_pandas(grouped: GroupedData) -> DataFrame:
    return grouped.transformWithStateInPandas(PandasAverages(), OUTPUT, outputMode="Update", timeMode="None")


VARIANTS = {"row": with_rows, "pandas": with_pandas}


def main() -> None:
    arguments = JobArguments.parse()
    spark = streaming.session(streaming.ROCKSDB)
    grouped = streaming.events(spark, arguments).groupBy("key")
    streaming.run(VARIANTS[arguments.variant](grouped), arguments).write(arguments.result)


if __name__ == "__main__":
    main()
