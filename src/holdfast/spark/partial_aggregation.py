"""Rows that Spark combines by key before they come to Python, where known aggregates are all that is made of them.

Spark plans an aggregation as two halves with an exchange between them: the first combines the rows of each partition,
the second what has come of them. Ahead of our own exchange the first half is all that is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from holdfast.errors import FunctionError
from holdfast.runtime.aggregates import Aggregation
from holdfast.runtime.event_time_column import EventTimeColumn
from holdfast.runtime.local_aggregation import Combination
from holdfast.runtime.overflow import too_large
from holdfast.runtime.partial_aggregates import COUNT, Partial, Sql
from holdfast.spark.internals.half_aggregation import first_half
from holdfast.spark.internals.jvm import JVM_ERRORS
from holdfast.spark.internals.planned_rows import RowShape

#: With it a sum that passes 64 bits is an error; without it, it overflows silently.
_ANSI = "spark.sql.ansi.enabled"
_OVERFLOW = "[ARITHMETIC_OVERFLOW]"
_CONTEXT = "\n== "
#: Columns beside those of rows: their event time in milliseconds, and the start of its pane.
_MILLIS, _START = "millis", "pane_start"


@dataclass(frozen=True)
class CombinedColumns:
    """Where the columns of combined rows are among those that Spark has computed."""

    #: In their order; with whether the sign is the other one.
    places: tuple[tuple[int, bool], ...]
    #: Of the numbers of rows that combined ones stand for.
    counted: int
    #: Of the newest event times of these rows, and of the starts of their panes.
    newest: int | None = None
    starts: int | None = None

    def read(self, rows: pa.RecordBatch) -> SparkCombined:
        columns = [pc.negate(rows.column(place)) if turned else rows.column(place) for place, turned in self.places]
        return SparkCombined(
            columns,
            pc.sum(rows.column(self.counted), min_count=0).as_py(),
            None if self.newest is None else rows.column(self.newest),
            None if self.starts is None else rows.column(self.starts),
        )


class SparkCombined(NamedTuple):
    """Rows that Spark has combined: their columns, how many rows they stand for, the newest event times of these, and
    the times that they have themselves, which are the starts of panes.
    """

    columns: list[pa.Array]
    counted: int
    newest: pa.Array | None
    times: pa.Array | None


@dataclass(frozen=True)
class CombiningPlan:
    """Gives one row for each key of each partition, in each pane of event time if there are panes."""

    plan: Any
    shape: RowShape
    columns: CombinedColumns


def plan_to_combine(
    frame: DataFrame, combination: Combination, event_time: EventTimeColumn | None = None
) -> CombiningPlan | None:
    """None where Spark's results might not be those of Arrow, or where it would do more than to combine."""
    aggregation, panes = combination.aggregation, combination.panes
    names, schema = list(aggregation.row_type.field_names), frame.schema
    if not _agrees_with_arrow(frame, names, aggregation):
        return None
    fields = [_field(place) for place in range(len(names))]
    rows, keys = frame.toDF(*fields), [fields[names.index(key)] for key in aggregation.key_columns]
    wanted = [*(_computed(partial, names, schema) for partial in aggregation.partials), _EVERY_ROW]
    grouped_by = list(keys)
    if event_time is not None:
        rows = rows.withColumn(_MILLIS, F.expr(f"unix_millis({fields[event_time.place]})"))
        wanted.append(_NEWEST)
    if event_time is not None and panes is not None:
        rows = rows.withColumn(_START, F.expr(f"{_MILLIS} - pmod({_MILLIS} - {panes.offset}, {panes.size})"))
        grouped_by.append(_START)
    if not grouped_by:
        # Of all rows together Spark gives a result where there are none, too.
        return None
    # Spark computes once what is asked for twice, and its columns are counted on.
    distinct = list(dict.fromkeys(wanted))
    whole = rows.groupBy(*grouped_by).agg(*(F.expr(one.text) for one in distinct))
    first = first_half(whole)
    # Spark may be set to leave the keys out of its results.
    if first is None or len(whole.schema) != len(grouped_by) + len(distinct):
        return None
    named = zip([*grouped_by, *(f"computed{place}" for place in range(len(distinct)))], whole.schema, strict=True)
    computed = StructType([StructField(name, field.dataType) for name, field in named])
    place_of = {one: len(grouped_by) + place for place, one in enumerate(distinct)}
    results = ((place_of[one], one.negated) for one in wanted[: len(aggregation.partials)])
    columns = CombinedColumns(
        (*((place, False) for place in range(len(keys))), *results),
        place_of[_EVERY_ROW],
        place_of.get(_NEWEST),
        len(keys) if _START in grouped_by else None,
    )
    return CombiningPlan(first, RowShape(computed.json()), columns)


@contextmanager
def explained_overflows(aggregations: Iterable[Aggregation]) -> Iterator[None]:
    """Spark's own report of a sum that passes 64 bits does not say of what, and gives advice that is none here."""
    try:
        yield
    # Which of them depends on the version of Spark.
    except (PySparkException, *JVM_ERRORS) as error:
        sums = [p.field for one in aggregations for p in one.partials if p.overflows]
        # With an expression of the program's comes where it stands.
        if sums and _OVERFLOW in str(error) and _CONTEXT not in str(error):
            raise FunctionError(too_large(" or ".join(map(str, sums)))) from error
        raise


def _field(place: int) -> str:
    return f"field{place}"


def _computed(partial: Partial, names: Sequence[str], schema: StructType) -> Sql:
    """A column as Spark computes it, of rows whose fields have other names."""
    sql = partial.function.sql
    assert sql is not None, "others are left to Arrow"
    if partial.field is None:
        return sql
    place = names.index(partial.field)
    # A field that is never null is there as often as rows are.
    value = "1" if partial.function == COUNT and not schema[place].nullable else _field(place)
    return sql._replace(text=sql.text.format(value=value))


_EVERY_ROW = Sql("count(1)")
_NEWEST = Sql(f"max({_MILLIS})")


def _agrees_with_arrow(frame: DataFrame, names: Sequence[str], aggregation: Aggregation) -> bool:
    types = {name: field.dataType for name, field in zip(names, frame.schema, strict=True)}
    if any(partial.function.sql is None for partial in aggregation.partials):
        return False
    # Other collations call texts equal that are different keys.
    if any(isinstance(types[key], StringType) and types[key] != StringType() for key in aggregation.key_columns):
        return False
    large = [p for p in aggregation.partials if p.overflows and isinstance(types[str(p.field)], LongType)]
    return not large or frame.sparkSession.conf.get(_ANSI) == "true"
