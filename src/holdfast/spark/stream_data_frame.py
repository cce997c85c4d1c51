"""A stream as a DataFrame. What a program does to it is done at once to a DataFrame without rows, which tells of
errors, and remembered: in the job it is done to the rows of each epoch.

It is no DataFrame of Spark's, since its plan gets another leaf in each attempt. It has those methods that take a row at
a time, and refuses all others by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from holdfast.errors import ProgramError, UnavailableNameError
from holdfast.runtime.query import Transformation, View
from holdfast.spark.internals.jvm import JAVA_FRAME

#: By which columns of the stream are told from those of a table that it is joined with.
_QUALIFIER = "holdfast_stream"


class _Refusal(NamedTuple):
    """Methods of Spark's DataFrames; what they are, and what to use instead."""

    names: str
    what: str
    instead: str


_REFUSALS = (
    _Refusal(
        "collect count first head take tail show toPandas toArrow toLocalIterator toJSON foreach foreachPartition "
        "isEmpty describe summary write writeTo writeStream rdd cache persist unpersist checkpoint localCheckpoint "
        "createGlobalTempView createOrReplaceGlobalTempView explain",
        "needs rows at once, and the rows of a stream come with the epochs of a job",
        "env.from_data_frame(data_frame), which is a stream, and its print(), sink_to(...), for_each_batch(...) or "
        "execute_and_collect()",
    ),
    _Refusal(
        "groupBy groupby agg rollup cube groupingSets pivot distinct dropDuplicates drop_duplicates "
        "dropDuplicatesWithinWatermark observe",
        "is an aggregation, which would need what other epochs have read",
        "key_by(...) with aggregate(...), or with window(...), behind env.from_data_frame(...)",
    ),
    _Refusal(
        "orderBy sort sortWithinPartitions",
        "orders rows, and those of an epoch are no unit of the program",
        "a window that sorts its rows, behind env.from_data_frame(...)",
    ),
    _Refusal(
        "limit offset",
        "counts rows, which would need what other epochs have read",
        "key_by(...) and a function that counts in keyed state, behind env.from_data_frame(...)",
    ),
    _Refusal(
        "union unionAll unionByName intersect intersectAll subtract exceptAll",
        "puts the rows of two DataFrames together",
        "stream.union(...); rows of a table come by env.from_data_frame(table)",
    ),
    _Refusal("sample sampleBy randomSplit", "is another one in each attempt", "filter(...) of the stream"),
    _Refusal(
        "repartition repartitionByRange coalesce",
        "moves rows, and those of a stream belong to their subtasks",
        "rebalance(), key_by(...) or set_parallelism(...) of the stream",
    ),
    _Refusal(
        "withWatermark",
        "is of Spark's streams",
        "assign_timestamps_and_watermarks(...) in front of to_data_frame(event_time_column=...)",
    ),
    _Refusal(
        "mapInPandas mapInArrow mapPartitions",
        "would see the rows of a task in an epoch, which are no unit of the program",
        "map(...), flat_map(...) or process(...) of the stream, or a UDF in select(...)",
    ),
    _Refusal(
        JAVA_FRAME,
        "is where Spark wants a DataFrame of its own",
        "the stream's DataFrame on the left: data_frame.join(broadcast(table), ...)",
    ),
)


@dataclass(frozen=True)
class Origin:
    """The stream that a DataFrame is of, for whoever has made it."""

    view: View
    stream: Any
    #: Gives a DataFrame a name that ``env.sql`` knows; True replaces what has it.
    name_it: Callable[[StreamDataFrame, str, bool], None]


@dataclass(frozen=True, eq=False)
class StreamDataFrame:
    """The rows of a stream, for Spark's transformations that take a row at a time. ``env.from_data_frame`` makes a
    stream of what comes of them.
    """

    _origin: Origin
    #: What comes of it where the stream has no rows.
    _frame: DataFrame
    _qualifier: str
    _steps: tuple[Transformation, ...] = ()
    _told: tuple[str, ...] = ()

    @staticmethod
    def of(origin: Origin, no_rows: DataFrame) -> StreamDataFrame:
        """All columns of a stream. ``no_rows`` is a DataFrame that has them."""
        first = _step("alias", (_QUALIFIER,), {})
        return StreamDataFrame(origin, first(no_rows), _QUALIFIER, (first,))

    # -- what it is

    @property
    def columns(self) -> list[str]:
        return self._frame.columns

    @property
    def schema(self) -> StructType:
        return self._frame.schema

    @property
    def dtypes(self) -> list[tuple[str, str]]:
        return self._frame.dtypes

    def printSchema(self, level: int | None = None) -> None:
        self._frame.printSchema(level)

    @property
    def text(self) -> str:
        """How it was written, for messages."""
        return ".".join(["to_data_frame()", *(f"{name}(...)" for name in self._told)])

    @property
    def origin(self) -> Origin:
        return self._origin

    def apply(self, rows: DataFrame) -> DataFrame:
        """All that was done to the stream's DataFrame, done to one that has its columns."""
        for step in self._steps:
            rows = step(rows)
        return rows

    def __getitem__(self, item: Any) -> Any:
        """As of Spark's: a column by name or place, the rows of a condition, or a list of columns."""
        if isinstance(item, (str, int)):
            return self._column(item if isinstance(item, str) else self.columns[item])
        return self.where(item) if isinstance(item, Column) else self.select(*item)

    def __getattr__(self, name: str) -> Any:
        _refuse(name)
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        if name not in self.columns:
            raise UnavailableNameError(
                f"The DataFrame of a stream has no column {name!r} ({', '.join(self.columns)}), nor a method of that "
                "name: it has those of Spark's that take a row at a time. Others run behind env.from_data_frame(...), "
                "in functions of the stream."
            )
        return self._column(name)

    def _column(self, name: str) -> Column:
        """A column that is looked for by its name, in whatever rows there are then."""
        own = F.col(f"{self._qualifier}.{name}")
        try:
            self._frame.select(own)
        except AnalysisException:
            own = F.col(name)
            self._frame.select(own)
        return own

    # -- what is done to it

    def select(self, *cols: Any) -> StreamDataFrame:
        return self._then("select", *cols)

    def selectExpr(self, *expr: Any) -> StreamDataFrame:
        return self._then("selectExpr", *expr)

    def filter(self, condition: Any) -> StreamDataFrame:
        return self._then("filter", condition)

    where = filter

    def withColumn(self, colName: str, col: Column) -> StreamDataFrame:
        return self._then("withColumn", colName, col)

    def withColumns(self, *colsMap: Any) -> StreamDataFrame:
        return self._then("withColumns", *colsMap)

    def withColumnRenamed(self, existing: str, new: str) -> StreamDataFrame:
        return self._then("withColumnRenamed", existing, new)

    def withColumnsRenamed(self, colsMap: dict[str, str]) -> StreamDataFrame:
        return self._then("withColumnsRenamed", colsMap)

    def drop(self, *cols: Any) -> StreamDataFrame:
        return self._then("drop", *cols)

    def toDF(self, *cols: str) -> StreamDataFrame:
        return self._then("toDF", *cols)

    def dropna(self, *args: Any, **kwargs: Any) -> StreamDataFrame:
        return self._then("dropna", *args, **kwargs)

    def fillna(self, *args: Any, **kwargs: Any) -> StreamDataFrame:
        return self._then("fillna", *args, **kwargs)

    def join(self, other: Any, on: Any = None, how: str | None = None) -> StreamDataFrame:
        """Join a table that is sent to all tasks: ``broadcast(table)``, of ``pyspark.sql.functions``."""
        return self._then("join", other, on, how)

    def crossJoin(self, other: Any) -> StreamDataFrame:
        return self._then("crossJoin", other)

    def alias(self, alias: str) -> StreamDataFrame:
        return replace(self._then("alias", alias), _qualifier=alias)

    def transform(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> StreamDataFrame:
        result = func(self, *args, **kwargs)
        if not isinstance(result, StreamDataFrame):
            raise ProgramError(
                f"The function of transform() gave {type(result).__name__}. Let it return the DataFrame that it was "
                "called with, or what comes of that."
            )
        return result

    def createTempView(self, name: str) -> None:
        """A name for queries of ``env.sql``; Spark's session does not have it."""
        self._origin.name_it(self, name, False)

    def createOrReplaceTempView(self, name: str) -> None:
        """As ``createTempView``, also where there is such a view."""
        self._origin.name_it(self, name, True)

    def _then(self, name: str, *args: Any, **kwargs: Any) -> StreamDataFrame:
        if any(isinstance(given, StreamDataFrame) for given in (*args, *kwargs.values())):
            raise ProgramError(
                f"{name}() of a stream's DataFrame takes a table, and not the DataFrame of a stream: to put the rows "
                "of two streams together needs state. Use stream.join(...), connect(...) or interval_join(...)."
            )
        step = _step(name, args, kwargs)
        return replace(self, _frame=step(self._frame), _steps=(*self._steps, step), _told=(*self._told, name))


def _step(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Transformation:
    def step(rows: DataFrame) -> DataFrame:
        changed: DataFrame = getattr(rows, name)(*args, **kwargs)
        return changed

    return step


def _refuse(name: str) -> None:
    for refusal in _REFUSALS:
        if name in refusal.names.split():
            raise UnavailableNameError(
                f"{name} of a stream's DataFrame is not available: it {refusal.what}. Use {refusal.instead}."
            )
