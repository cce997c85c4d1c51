"""The rows of a DataFrame as Spark has planned them: a fixed number of partitions, whatever is planned around them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame, SparkSession

#: Types by their names, of which a value takes 16 bytes at most. Decimals have their digits in their names.
_NUMBERS = frozenset(
    {"byte", "short", "integer", "long", "float", "double", "boolean", "date", "timestamp", "timestamp_ntz"}
)
_DECIMAL = "decimal("
_FEW = 100
#: In front of what is behind a shuffle, where Spark draws an RDD and all that it is made of.
_SHUFFLE = "+-("


@dataclass(frozen=True)
class RowShape:
    """What a plan must know of rows that each run of it brings anew."""

    #: As JSON.
    schema: str

    @cached_property
    def few_numbers(self) -> bool:
        """Whether ten thousand rows have 16 MB at most, whatever is in them."""
        types = [field["type"] for field in json.loads(self.schema)["fields"]]
        numbers = [name for name in types if isinstance(name, str) and (name in _NUMBERS or name.startswith(_DECIMAL))]
        return numbers == types and len(types) <= _FEW

    def data_frame(self, session: SparkSession, rdd: Any) -> DataFrame:
        """A DataFrame of an RDD with rows in Spark's own form."""
        java_session = session._jsparkSession
        rows = java_session.internalCreateDataFrame(rdd, java_session.parseDataType(self.schema), False)
        return DataFrame(rows, session)

    def empty(self, session: SparkSession) -> DataFrame:
        return self.data_frame(session, session._jsparkSession.emptyDataFrame().queryExecution().toRdd())


@dataclass(frozen=True)
class PlannedRows:
    """Rows of an RDD, which Spark does not look into: planned as a part of an epoch, a DataFrame could get other
    partitions than were counted, or share them with the rest of its level.
    """

    rdd: Any
    partitions: int
    shape: RowShape
    #: Whether Spark has to shuffle for them.
    exchanged: bool

    @classmethod
    def of(cls, frame: DataFrame) -> PlannedRows:
        """All rows of a DataFrame."""
        # A new selection, because a DataFrame keeps the first plan it gets: with settings of before the job, and with
        # shuffles that may be gone.
        return cls.of_rdd(frame.select("*")._jdf.queryExecution().toRdd(), RowShape(frame.schema.json()))

    @classmethod
    def of_rdd(cls, rdd: Any, shape: RowShape) -> PlannedRows:
        """Rows of an RDD whose partitions are fixed from now on: a source that would name others is not asked."""
        return cls(rdd, int(rdd.getNumPartitions()), shape, exchanged=_SHUFFLE in rdd.toDebugString())


def rows_of_query(frame: DataFrame) -> Any:
    """The RDD with the rows of a micro-batch, as its query gives them. A plan of their own would only copy each."""
    return frame._jdf.queryExecution().logical().rdd()


def executed_plan(frame: DataFrame) -> Any:
    return frame._jdf.queryExecution().executedPlan()


def with_settings(session: SparkSession, rdd: Any, changed: Mapping[str, str]) -> Any:
    """This RDD of rows, whose tasks see the settings that the session has now, but for the changed ones. Not in a
    query of Spark's own, whose settings hold for all its tasks.
    """
    java: Any = session.sparkContext._jvm
    settings = session._jsparkSession.sessionState().conf().clone()
    for name, value in changed.items():
        settings.setConfString(name, value)
    return java.org.apache.spark.sql.execution.SQLExecutionRDD(rdd, settings)
