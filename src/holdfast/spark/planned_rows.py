"""The rows of a DataFrame as Spark has planned them: a fixed number of partitions, whatever is planned around them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from holdfast.errors import ProgramError


@dataclass(frozen=True)
class PlannedRows:
    """``rows`` is a DataFrame of an RDD, which Spark does not look into: planned as a part of an epoch, a DataFrame
    could get other partitions than were counted, or share them with the rest of its level.
    """

    rows: DataFrame
    partitions: int

    @classmethod
    def of(cls, session: SparkSession, frame: DataFrame) -> PlannedRows:
        # A new selection, because a DataFrame keeps the first plan it gets: with settings of before the job, and with
        # shuffles that may be gone.
        rdd = frame.select("*")._jdf.queryExecution().toRdd()
        return cls.of_rdd(session, rdd, frame.schema)

    @classmethod
    def of_rdd(cls, session: SparkSession, rdd: Any, schema: StructType) -> PlannedRows:
        """Rows in Spark's own form, for plans of ``session``."""
        java_session = session._jsparkSession
        java_schema = java_session.parseDataType(schema.json())
        rows = DataFrame(java_session.internalCreateDataFrame(rdd, java_schema, False), session)
        return cls(rows, int(rdd.getNumPartitions()))


def check_not_observed(name: str, frame: DataFrame) -> None:
    """Figures of ``observe()`` come with the plan that is run, and that of a DataFrame is hidden in the epoch's."""
    if "CollectMetrics" in frame._jdf.queryExecution().analyzed().toString():
        raise ProgramError(
            f"The DataFrame '{name}' has observe(), whose figures would never come: whoever asks for them would wait "
            "for ever. Leave it out, and count in a function, or see the job's metrics."
        )
