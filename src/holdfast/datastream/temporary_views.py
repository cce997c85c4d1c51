"""Streams by names that queries read them by."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from holdfast.datastream.data_stream import DataStream
from holdfast.errors import ProgramError
from holdfast.job.engine import Engine
from holdfast.runtime.query import Query, QueryOperator, View
from holdfast.spark.stream_data_frame import Origin, StreamDataFrame

if TYPE_CHECKING:
    from holdfast.datastream.stream_execution_environment import StreamExecutionEnvironment

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


class TemporaryViews:
    """The views of one environment. As in SQL, case does not matter."""

    def __init__(self, environment: StreamExecutionEnvironment) -> None:
        self._environment = environment
        self._all: dict[str, tuple[View, DataStream]] = {}

    def create(self, name: str, stream: DataStream, event_time_column: str | None) -> None:
        if not isinstance(stream, DataStream):
            raise ProgramError(
                f"create_temporary_view() takes a stream; got {type(stream).__name__}. A DataFrame has its name in "
                "Spark: data_frame.createOrReplaceTempView(name)."
            )
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ProgramError(f"The name of a view has letters, digits and underscores; got {name!r}.")
        if name.lower() in self._all:
            raise ProgramError(f"There is a view '{name}' already. Drop it first: env.drop_temporary_view({name!r}).")
        self._all[name.lower()] = self._view(name, stream, event_time_column), stream

    def _view(self, name: str, stream: DataStream, event_time_column: str | None) -> View:
        view = View(name, stream.get_type(), event_time_column)
        if event_time_column is None:
            return view
        if view.event_time_column in view.columns:
            raise ProgramError(
                f"The rows of the view '{view.name}' have a column '{view.event_time_column}' themselves: give their "
                "event time another name."
            )
        if not stream._unkeyed()._connection().source.event_time:
            raise ProgramError(
                f"The stream '{stream.get_name()}' has no event time for the column '{view.event_time_column}' of the "
                f"view '{view.name}': put assign_timestamps_and_watermarks(...) before it, or leave event_time_column "
                "out."
            )
        return view

    def drop(self, name: str) -> bool:
        return self._all.pop(name.lower(), None) is not None

    def query(self, text: str, engine: Engine) -> DataStream:
        """The rows of a query on one of the views."""
        query = engine.analyse(text, [view for view, _ in self._all.values()])
        _, stream = self._all[query.view.name.lower()]
        return self._rows_of("SQL", query, stream)

    def data_frame(self, stream: DataStream, event_time_column: str | None, engine: Engine) -> StreamDataFrame:
        """A stream as a DataFrame."""
        view = self._view(stream.get_name(), stream, event_time_column)

        def name_it(data_frame: StreamDataFrame, name: str, replace: bool) -> None:
            named = self.stream_of(data_frame, name, engine)
            if replace:
                self.drop(name)
            self.create(name, named, None)

        return StreamDataFrame.of(Origin(view, stream, name_it), engine.data_frame(view))

    def stream_of(self, data_frame: StreamDataFrame, name: str, engine: Engine) -> DataStream:
        """The rows of a stream's DataFrame."""
        origin = data_frame.origin
        query = engine.analyse(data_frame.text, [origin.view], data_frame.apply)
        return self._rows_of(name, query, origin.stream)

    def _rows_of(self, name: str, query: Query, stream: DataStream) -> DataStream:
        node = self._environment.add_node(
            name,
            QueryOperator,
            query,
            query.output_type,
            [stream._unkeyed()._connection()],
            event_time=query.event_time is not None,
        )
        return DataStream(self._environment, node)
