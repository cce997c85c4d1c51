"""A plan of Spark's that is made once, and run again in every epoch.

To make a plan takes Spark several times as long as to start it, and every action of a DataFrame makes one. So the plan
is taken out of its DataFrame, and each run is one of a copy: a plan keeps the shuffles of its first run, and would give
their rows again. Rows that come with a run are put into its copy.

What Spark does for the actions of DataFrames around their plans is done here too: tasks see the SQL settings of the
session, and the files of shuffles are deleted when the run is over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.serializers import NoOpSerializer
from pyspark.sql import DataFrame, SparkSession
from pyspark.util import _load_from_socket

_EXCHANGE, _OF_RDD = "ShuffleExchangeExec", "RDDScanExec"


@dataclass(frozen=True)
class _Node:
    """A node of the plan, and those below it that lead to exchanges or to rows of RDDs, by their place."""

    plan: Any
    kind: str
    #: All that are below it, as Spark has them.
    below: Any
    children: Mapping[int, _Node]

    @classmethod
    def of(cls, plan: Any) -> _Node:
        below = plan.children()
        nodes = {place: cls.of(below.apply(place)) for place in range(below.size())}
        kind = str(plan.getClass().getSimpleName())
        matter = {place: node for place, node in nodes.items() if node.children or node.kind in (_EXCHANGE, _OF_RDD)}
        return cls(plan, kind, below, matter)

    def all(self, kind: str) -> Iterator[_Node]:
        if self.kind == kind:
            yield self
        for node in self.children.values():
            yield from node.all(kind)

    def over(self, rdds: Iterator[Any]) -> Any:
        """The plan over other RDDs: what is above them is made anew, the rest is shared."""
        plan = self.plan
        if self.kind == _OF_RDD:
            return plan.copy(
                plan.output(), next(rdds), plan.name(), plan.outputPartitioning(), plan.outputOrdering(), plan.stream()
            )
        below = self.below
        for place, node in self.children.items():
            below = below.updated(place, node.over(rdds))
        return plan.withNewChildren(below)

    def exchanges(self, plan: Any) -> Iterator[Any]:
        """Those of a plan that is a copy of this one."""
        if self.kind == _EXCHANGE:
            yield plan
        for place, node in self.children.items():
            yield from node.exchanges(plan.children().apply(place))


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
        self._sessions = java.SparkSession
        self._java_session = session._jsparkSession
        self._root = _Node.of(plan)
        self._rdds = sum(1 for _ in self._root.all(_OF_RDD))
        if self._rdds and not all(node.children for node in self._root.all(_EXCHANGE)):
            raise ValueError(f"An exchange is over none of the plan's RDDs, and would run once:\n{plan.toString()}")

    def run(self, rdds: Sequence[Any] = ()) -> list[bytes]:
        """The values of the column."""
        binary = pa.large_binary() if self._settings.arrowUseLargeVarTypes() else pa.binary()
        schema = pa.schema([pa.field(self._rows.columns[0], binary)])
        plan = self._copy(rdds)
        batches = self._rows._jdf.toArrowBatchRdd(plan)
        try:
            with self._with_settings():
                served = self._collect(batches)
            with _load_from_socket(served, NoOpSerializer()) as messages:
                columns = [pa.ipc.read_record_batch(pa.py_buffer(each), schema).column(0) for each in messages]
        finally:
            self._delete_files(plan)
        return [value for column in columns for value in column.to_pylist()]

    def _copy(self, rdds: Sequence[Any]) -> Any:
        if len(rdds) != self._rdds:
            raise ValueError(f"The plan reads {self._rdds} RDDs and was given {len(rdds)}.")
        if not rdds:
            return self._root.plan.clone()
        # A new node belongs to the session that the thread has at hand, which may be one of the program's.
        before = self._sessions.getActiveSession()
        self._sessions.setActiveSession(self._java_session)
        try:
            return self._root.over(iter(rdds))
        finally:
            if before.isDefined():
                self._sessions.setActiveSession(before.get())
            else:
                self._sessions.clearActiveSession()

    def _delete_files(self, plan: Any) -> None:
        """Of the plan's own shuffles: those of RDDs that it got may be somebody else's too."""
        with suppress(Py4JError, PySparkException, OSError):  # a JVM that is gone holds nothing
            cleaner = self._java_context.cleaner()
            for exchange in self._root.exchanges(plan) if cleaner.isDefined() else ():
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
