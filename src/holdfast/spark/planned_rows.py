"""The rows of a DataFrame as Spark has planned them: a fixed number of partitions, whatever is planned around them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from holdfast.errors import ProgramError


@dataclass(frozen=True)
class RowShape:
    """What a plan must know of rows that each run of it brings anew."""

    #: As JSON.
    schema: str

    def data_frame(self, session: SparkSession, rdd: Any) -> DataFrame:
        """Of an RDD with rows in Spark's own form."""
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

    @property
    def exchanged(self) -> bool:
        """Whether Spark has to shuffle for them."""
        return "ShuffledRowRDD" in self.rdd.toDebugString()

    @classmethod
    def of(cls, frame: DataFrame) -> PlannedRows:
        # A new selection, because a DataFrame keeps the first plan it gets: with settings of before the job, and with
        # shuffles that may be gone.
        return cls.of_rdd(frame.select("*")._jdf.queryExecution().toRdd(), RowShape(frame.schema.json()))

    @classmethod
    def of_rdd(cls, rdd: Any, shape: RowShape) -> PlannedRows:
        """Its partitions are fixed from now on: a source that would name others later is not asked again."""
        return cls(rdd, int(rdd.getNumPartitions()), shape)


def check_not_observed(name: str, frame: DataFrame) -> None:
    """Figures of ``observe()`` come with the plan that is run, and that of a DataFrame is hidden in the epoch's."""
    if "CollectMetrics" in frame._jdf.queryExecution().analyzed().toString():
        raise ProgramError(
            f"The DataFrame '{name}' has observe(), whose figures would never come: whoever asks for them would wait "
            "for ever. Leave it out, and count in a function, or see the job's metrics."
        )
