"""Queries on views, by Spark's SQL or by what is done to a DataFrame: analysed when the program is written, and put
between two levels of an epoch.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import pyarrow as pa
from pyspark.errors import ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from holdfast.errors import ProgramError
from holdfast.runtime.query import Query, Transformation, View
from holdfast.spark.envelope_rows import ArrowFunction
from holdfast.spark.internals.jvm import JVM_ERRORS
from holdfast.spark.session_settings import changed_settings
from holdfast.spark.stateless_queries import refuse_moments, refuse_moments_of_plan, view_that_is_read
from holdfast.spark.view_columns import ViewColumns
from holdfast.types.information import RowTypeInfo
from holdfast.types.resolve import resolve

#: As levels are planned, so that the plan of an analysis is that of an epoch. Each read of a view is seen in it.
_PLAN_SETTINGS = {
    "spark.sql.exchange.reuse": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.codegen.wholeStage": "false",
}
#: Views have their names in the session only while a query is analysed, which two threads may want at once.
_names = threading.Lock()


def analyse(
    session: SparkSession, text: str, views: Sequence[View], transformation: Transformation | None = None
) -> Query:
    """What a query reads and gives. ProgramError where it cannot run on each epoch's rows."""
    marked = [(f"rows_of_view_{number}", view) for number, view in enumerate(views)]
    frames = {view.name: without_rows(session, name, view) for name, view in marked}
    with changed_settings(session, _PLAN_SETTINGS):
        if transformation is None:
            refuse_moments(text)
            frame = _run(session, text, frames)
        else:
            frame = transformation(frames[views[0].name])
            refuse_moments_of_plan(frame)
        view = view_that_is_read(frame, marked)
        return Query(text, view, _checked_type(text, frame, views), transformation)


def queried(query: Query, rows: DataFrame) -> DataFrame:
    """What comes of the query where ``rows`` are those of its view. ProgramError where that has another type by now."""
    if query.transformation is None:
        frame = _run(rows.sparkSession, query.text, {query.view.name: rows})
    else:
        frame = query.transformation(rows)
    found = _checked_type(query.text, frame, [query.view])
    if found != query.output_type:
        raise ProgramError(
            f"The query {query.text!r} gives {found.describe()}, and gave {query.output_type.describe()} when the "
            "program was written: a table, view or function that it names has changed. Start the job anew."
        )
    return frame


def without_rows(session: SparkSession, name: str, view: View) -> DataFrame:
    """No rows, with the columns of a view: a function that plans show by its name."""

    def nothing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from ()

    nothing.__name__ = name
    function: ArrowFunction = nothing
    return session.range(0).mapInArrow(function, ViewColumns(view).spark)


def _run(session: SparkSession, text: str, frames: Mapping[str, DataFrame]) -> DataFrame:
    """Nothing is computed: Spark reads the text, and looks up what it names."""
    with _names, _named(session, frames):
        try:
            # In parentheses nothing but a query is read: a statement would be carried out here and now.
            return session.sql(f"SELECT * FROM (\n{text.strip().rstrip(';')}\n)")
        except (PySparkException, *JVM_ERRORS) as error:
            told = str(error).split("\n\nJVM stacktrace")[0]
            advice = " env.sql() takes one query, and no statement." if isinstance(error, ParseException) else ""
            raise ProgramError(f"Spark cannot read the query {text!r}: {told}{advice}") from error


@contextmanager
def _named(session: SparkSession, frames: Mapping[str, DataFrame]) -> Iterator[None]:
    for name in frames:
        if any(table.isTemporary for table in session.catalog.listTables(pattern=name)):
            raise ProgramError(
                f"The Spark session has a temporary view '{name}', and so has the environment. Give one of them "
                "another name."
            )
    try:
        for name, frame in frames.items():
            frame.createOrReplaceTempView(name)
        yield
    finally:
        for name in frames:
            session.catalog.dropTempView(name)


def _checked_type(text: str, frame: DataFrame, views: Sequence[View]) -> RowTypeInfo:
    try:
        found = resolve(frame.schema)
    except ProgramError as error:
        raise ProgramError(f"The query {text!r} gives rows that a stream cannot have: {error}") from error
    assert isinstance(found, RowTypeInfo)
    for name in {view.event_time_column for view in views}.intersection(frame.columns):
        kind = frame.schema[str(name)].dataType.simpleString()
        if kind != "timestamp":
            raise ProgramError(
                f"The query {text!r} gives the column '{name}' as {kind}; the event time of rows is a timestamp. Pass "
                "on the view's column as it is, or give the other one another name."
            )
    return found
