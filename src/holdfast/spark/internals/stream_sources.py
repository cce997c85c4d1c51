"""What Spark's streams are made of, and all streams of a job as one DataFrame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from holdfast.errors import ProgramError
from holdfast.spark.internals.stream_log import StreamSource

#: The column that says which stream a row is of; that of stream ``i`` has its row.
_TAG = "tag"

_STATEFUL = frozenset(
    {
        "Aggregate",
        "Deduplicate",
        "DeduplicateWithinWatermark",
        "Distinct",
        "FlatMapGroupsInPandasWithState",
        "FlatMapGroupsWithState",
        "GlobalLimit",
        "TransformWithState",
        "TransformWithStateInPySpark",
    }
)
#: Sources of Spark's own whose commit() does nothing.
_KEEP_EVERYTHING = frozenset({"kafka", "rate", "rate-micro-batch"})
_FILE_SOURCE = "FileSource["


def _column_of(stream: int) -> str:
    return f"stream_{stream}"


def in_one(data_frames: Sequence[Any]) -> DataFrame:
    """The union of streams of any types: a query over it has one offset log, and each entry is one cut. The rows of a
    single stream are as they are; those of several have a tag, and a column for each stream.
    """
    if len(data_frames) == 1:
        rows: DataFrame = data_frames[0]
        return rows

    def tagged(number: int) -> DataFrame:
        columns = [
            F.struct("*").alias(_column_of(other))
            if other == number
            else F.lit(None).cast(frame.schema).alias(_column_of(other))
            for other, frame in enumerate(data_frames)
        ]
        of_stream: DataFrame = data_frames[number].select(F.lit(number).alias(_TAG), *columns)
        return of_stream

    return reduce(DataFrame.union, map(tagged, range(len(data_frames))))


def sources_of(names: Sequence[str], data_frames: Sequence[Any]) -> list[list[StreamSource]]:
    """The sources of each stream, in the order in which Spark numbers them. ProgramError for what cannot be rewound to
    a checkpoint.
    """
    relations: list[Any] = []
    streams = []
    for name, frame in zip(names, data_frames, strict=True):
        sources = []
        for node in _nodes(frame._jdf.queryExecution().analyzed()):
            _check_stateless(name, node)
            if node.children().isEmpty():
                _check_new(name, node, relations)
                relations.append(node)
                sources.append(_source(name, node))
        streams.append(sources)
    return streams


def _nodes(plan: Any) -> Iterator[Any]:
    """All streaming nodes, each before its children."""
    if plan.isStreaming():
        yield plan
        children = plan.children()
        for number in range(children.size()):
            yield from _nodes(children.apply(number))


def _check_stateless(name: str, node: Any) -> None:
    """Spark would keep state of its own in the query's directory, which no checkpoint holds."""
    kind, children = str(node.nodeName()), node.children()
    both = kind == "Join" and all(children.apply(side).isStreaming() for side in (0, 1))
    if kind in _STATEFUL or both:
        raise ProgramError(
            f"The stream '{name}' has an operator of Spark that keeps state ({kind}): that state would be in no "
            "checkpoint. Give from_data_frame() the stream as it is in front of it, and aggregate, join or "
            "deduplicate with keyed state."
        )


def _check_new(name: str, node: Any, relations: list[Any]) -> None:
    if any(node.equals(other) for other in relations):
        raise ProgramError(
            f"The stream '{name}' reads the same source object a second time, which Spark would read once for both. "
            "Call from_data_frame() once and use its stream several times, or load the source twice."
        )


def _source(name: str, node: Any) -> StreamSource:
    kind = str(node.getClass().getSimpleName())
    if kind == "StreamingRelation":
        lists_files = str(node.sourceName()).startswith(_FILE_SOURCE)
        if lists_files:
            _check_files_stay(name, node.dataSource().options())
        return StreamSource(str(node.dataSource().className()).lower(), lists_files, lists_files)
    if kind == "StreamingRelationV2":
        source = str(node.sourceName())
        return StreamSource(source, keeps_everything=source in _KEEP_EVERYTHING)
    return StreamSource(kind)


def _check_files_stay(name: str, options: Any) -> None:
    entries = options.iterator()
    while entries.hasNext():
        entry = entries.next()
        if str(entry._1()).lower() == "cleansource" and str(entry._2()).lower() != "off":
            raise ProgramError(
                f"The stream '{name}' reads files with cleanSource={entry._2()}: Spark would take files away that a "
                "checkpoint or a savepoint goes back to, and they would be missing without an error. Leave the option "
                "out, and delete files that are older than every snapshot you keep."
            )
