"""Which engine runs a program. It is Spark, always; only a test can put another one in its place, for a while."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from holdfast.graph.job_graph import JobSettings
from holdfast.graph.stream_graph import StreamGraph
from holdfast.job.engine import Engine
from holdfast.job.job_of_program import job_of
from holdfast.job.running_job import RunningJob
from holdfast.spark.engine import SparkEngine
from holdfast.storage.check import check_storage

EngineFactory = Callable[[StreamGraph, JobSettings], Engine]


def spark_engine(graph: StreamGraph, settings: JobSettings) -> Engine:
    """The session of the program's DataFrames, else the active one, else a local one, once one is needed."""
    return SparkEngine(settings.spark, data_frames_of(graph), settings.dependencies)


def data_frames_of(graph: StreamGraph) -> list[Any]:
    """DataFrames that the program reads: it runs in their session."""
    return [node.data_frame for node in graph.nodes if node.data_frame is not None]


_engine_for: EngineFactory = spark_engine


def engine_for(graph: StreamGraph, settings: JobSettings) -> Engine:
    return _engine_for(graph, settings)


@contextmanager
def engines_from(factory: EngineFactory) -> Iterator[None]:
    """For tests: programs of this process run on engines that ``factory`` gives, while the block runs."""
    global _engine_for
    before, _engine_for = _engine_for, factory
    try:
        yield
    finally:
        _engine_for = before


def submit(graph: StreamGraph, job_id: str, name: str, settings: JobSettings) -> RunningJob:
    """Check the program, make a job of it and start it."""
    # Before Spark starts: a wrong bucket, missing credentials or a read-only mount is told at once.
    if settings.checkpoint.enabled and settings.checkpoint.directory is not None:
        check_storage(settings.checkpoint.directory)
    engine = engine_for(graph, settings)
    return RunningJob(job_of(graph, job_id, name, settings, engine), engine).start()
