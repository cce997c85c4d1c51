"""A plan of Spark's that is made once, and run again in every epoch.

To make a plan takes Spark several times as long as to start it, and every action of a DataFrame makes one. So the plan
is taken out of its DataFrame, and each run is one of a copy: a plan keeps the shuffles of its first run, and would give
their rows again.

What Spark does for the actions of DataFrames around their plans is done here too: tasks see the SQL settings of the
session, and the files of shuffles are deleted when the run is over.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.serializers import NoOpSerializer
from pyspark.sql import DataFrame, SparkSession
from pyspark.util import _load_from_socket

_LARGE_TYPES = "spark.sql.execution.arrow.useLargeVarTypes"


class RepeatedPlan:
    """The plan of rows with one binary column, and no other source than RDDs and cached tables. One thread makes it,
    runs it and closes it.
    """

    def __init__(self, session: SparkSession, rows: DataFrame, plan: Any) -> None:
        self._context = session.sparkContext
        self._rows = rows
        self._plan = plan
        settings: Mapping[str, str] = session.conf.getAll
        binary = pa.large_binary() if session.conf.get(_LARGE_TYPES) == "true" else pa.binary()
        self._schema = pa.schema([pa.field(rows.columns[0], binary)])
        self._seen_by_tasks = {name: value for name, value in settings.items() if name.startswith("spark.sql.")}
        for name, value in self._seen_by_tasks.items():
            self._context.setLocalProperty(name, value)

    def run(self) -> list[bytes]:
        """The values of the column."""
        batches = self._rows._jdf.toArrowBatchRdd(self._plan.clone())
        try:
            served = self._context._jvm.PythonRDD.collectAndServe(batches)  # type: ignore[union-attr]  # it runs
            with _load_from_socket(served, NoOpSerializer()) as messages:
                columns = [pa.ipc.read_record_batch(pa.py_buffer(each), self._schema).column(0) for each in messages]
        finally:
            with suppress(Py4JError, OSError):  # a JVM that is gone holds nothing
                batches.cleanShuffleDependencies(False)
        return [value for column in columns for value in column.to_pylist()]

    def close(self) -> None:
        for name in self._seen_by_tasks:
            self._context.setLocalProperty(name, None)  # type: ignore[arg-type]  # None removes it
