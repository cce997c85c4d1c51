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
from pyspark.errors import PySparkException
from pyspark.serializers import NoOpSerializer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, StructField, StructType

from holdfast.spark.internals.jvm import JVM_ERRORS
from holdfast.spark.internals.kept_plan import KeptPlan
from holdfast.spark.internals.planned_rows import RowShape, executed_plan, rows_of_query, with_settings

try:
    from pyspark.util import _load_from_socket
except ImportError:  # Spark 3.5
    from pyspark.rdd import _load_from_socket  # type: ignore[no-redef]


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
        for name, value in _settings_of(session).items():
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
            with _messages(served) as messages:
                columns = [pa.ipc.read_record_batch(pa.py_buffer(each), schema).column(0) for each in messages]
        finally:
            self._delete_files(plan)
        return [value for column in columns for value in column.to_pylist()]

    def _delete_files(self, plan: Any) -> None:
        """Delete the files of the plan's own shuffles: those of RDDs that it got may be somebody else's too."""
        with suppress(*JVM_ERRORS, PySparkException):  # a JVM that is gone holds nothing
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
            with suppress(*JVM_ERRORS):
                self._java_context.setLocalProperties(before)


@contextmanager
def _messages(served: Any) -> Iterator[Iterator[Any]]:
    """What the JVM serves on a socket. Before 4.2 the socket is closed by whoever collects garbage."""
    loaded: Any = _load_from_socket(served, NoOpSerializer())
    if hasattr(loaded, "__enter__"):
        with loaded as messages:
            yield messages
    else:
        yield loaded


def _settings_of(session: SparkSession) -> dict[str, str]:
    """What is set in a session. Before 4.0 only SQL tells all of it."""
    if hasattr(session.conf, "getAll"):
        return dict(session.conf.getAll)
    return {row.key: row.value for row in session.sql("SET").collect()}


def probe(session: SparkSession) -> str | None:
    """Takes copies of a plan with an exchange over an RDD, as epochs do, and runs one over the rows of a micro-batch.
    There are none: tasks would wait for executors, which an application that starts need not have.
    """
    empty = RowShape(StructType([StructField("payload", BinaryType())]).json()).empty(session)
    read = KeptPlan(session, executed_plan(empty)).over([rows_of_query(empty)])
    rows = with_settings(session, read.execute(), {})
    exchanged = empty.repartition(2, "payload")
    repeated = RepeatedPlan(session, exchanged, executed_plan(exchanged))
    for _ in range(2):
        plan = repeated._kept.over([rows])
        exchanged._jdf.toArrowBatchRdd(plan).getNumPartitions()
        repeated._delete_files(plan)
    found = RepeatedPlan(session, empty, executed_plan(empty)).run([rows])
    return f"a plan over no rows gives {len(found)}" if found else None
