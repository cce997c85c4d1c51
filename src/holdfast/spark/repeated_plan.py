"""A plan of Spark's that is made once, and run again in every epoch.

To make a plan takes Spark several times as long as to start it, and every action of a DataFrame makes one. So the plan
is taken out of its DataFrame.

What Spark does for the actions of DataFrames around their plans is done here too: tasks see the SQL settings of the
session, and the files of shuffles are deleted when the run is over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.serializers import NoOpSerializer
from pyspark.sql import DataFrame, SparkSession
from pyspark.util import _load_from_socket

from holdfast.spark.kept_plan import KeptPlan


class RepeatedPlan:
    """The plan of rows with one binary column. It reads cached tables, which stay, and RDDs, which come with each run:
    in the order in which the plan reads them.
    """

    def __init__(self, session: SparkSession, rows: DataFrame, plan: Any) -> None:
        self._rows = rows
        java: Any = session.sparkContext._jvm
        self._collect = java.PythonRDD.collectAndServe
        self._java_context: Any = session.sparkContext._jsc.sc()
        self._settings: Any = session._jsparkSession.sessionState().conf()
        self._seen_by_tasks = java.java.util.Properties()
        for name, value in session.conf.getAll.items():
            if name.startswith("spark.sql."):
                self._seen_by_tasks.setProperty(name, value)
        self._kept = KeptPlan(session, plan)

    def run(self, rdds: Sequence[Any] = ()) -> list[bytes]:
        """The values of the column."""
        binary = pa.large_binary() if self._settings.arrowUseLargeVarTypes() else pa.binary()
        schema = pa.schema([pa.field(self._rows.columns[0], binary)])
        plan = self._kept.over(rdds)
        batches = self._rows._jdf.toArrowBatchRdd(plan)
        try:
            with self._with_settings():
                served = self._collect(batches)
            with _load_from_socket(served, NoOpSerializer()) as messages:
                columns = [pa.ipc.read_record_batch(pa.py_buffer(each), schema).column(0) for each in messages]
        finally:
            self._delete_files(plan)
        return [value for column in columns for value in column.to_pylist()]

    def _delete_files(self, plan: Any) -> None:
        """Of the plan's own shuffles: those of RDDs that it got may be somebody else's too."""
        with suppress(Py4JError, PySparkException, OSError):  # a JVM that is gone holds nothing
            cleaner = self._java_context.cleaner()
            for exchange in self._kept.exchanges(plan) if cleaner.isDefined() else ():
                cleaner.get().doCleanupShuffle(exchange.shuffleId(), False)

    @contextmanager
    def _with_settings(self) -> Iterator[None]:
        """Not for longer: the thread may have Spark jobs of the program to run, with settings of their own."""
        before = self._java_context.getLocalProperties()
        both = before.clone()
        both.putAll(self._seen_by_tasks)
        self._java_context.setLocalProperties(both)
        try:
            yield
        finally:
            with suppress(Py4JError, OSError):
                self._java_context.setLocalProperties(before)
