"""Where a program begins and ends: sources in, ``execute`` out."""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from holdfast.common.config_files import find_config_file, read_config_file
from holdfast.common.configuration import Configuration
from holdfast.common.execution_config import ExecutionConfig
from holdfast.common.job_client import JobClient
from holdfast.common.job_execution_result import JobExecutionResult
from holdfast.common.options import BACKEND, EXECUTION_MODE, OPERATOR_CHAINING, SAVEPOINT_DIRECTORY
from holdfast.common.restart_strategy import RestartStrategyConfiguration
from holdfast.common.run_settings import PLAN_VARIABLE, run_settings
from holdfast.common.settings_parser import ParsedSettings, parse_settings, restart_settings
from holdfast.common.watermark_strategy import WatermarkStrategy
from holdfast.connectors.collect import Collection
from holdfast.connectors.collection import CollectionSource
from holdfast.coverage.answers import refusal
from holdfast.datastream.checkpoint_config import CheckpointConfig
from holdfast.datastream.checkpointing_mode import CheckpointingMode
from holdfast.datastream.data_stream import CloseableIterator, DataStream
from holdfast.datastream.engines import engine_for, submit
from holdfast.datastream.execution_mode import RuntimeExecutionMode
from holdfast.datastream.interception import intercept
from holdfast.datastream.plan_description import describe_plan
from holdfast.datastream.program_files import ProgramFiles
from holdfast.datastream.publication import publication_for
from holdfast.datastream.settings_without_effect import SettingsWithoutEffect
from holdfast.datastream.state_backend import StateBackend
from holdfast.datastream.temporary_views import TemporaryViews
from holdfast.errors import ProgramError
from holdfast.graph.execution_mode import runs_as_batch
from holdfast.graph.job_graph import JobSettings
from holdfast.graph.stream_graph import Connection, Node, StreamGraph
from holdfast.runtime.endpoints import SourceOperator
from holdfast.runtime.event_time_column import EventTimeColumn
from holdfast.runtime.plan import OperatorFactory
from holdfast.runtime.row_path import RowPath
from holdfast.runtime.source import Source, SourceFunction
from holdfast.spark.frames import check_data_frame
from holdfast.spark.stream_data_frame import StreamDataFrame
from holdfast.types.resolve import resolve
from holdfast.types.typeinfo import TypeInformation

logger = logging.getLogger(__name__)

_PLAN_TITLE = "----------------------- Execution Plan -----------------------"
_PLAN_END = "-" * 62


class StreamExecutionEnvironment(ProgramFiles, SettingsWithoutEffect):
    """Collects a program and runs it on the active Spark session, or on a local one made for it."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._graph = StreamGraph()
        self._views = TemporaryViews(self)
        #: The way that rows take into the windows of this program. For tests: all ways give the same.
        self.row_path = RowPath()

    @staticmethod
    def get_execution_environment(configuration: Configuration | None = None) -> StreamExecutionEnvironment:
        """An environment with the settings of ``config.yaml`` or ``flink-conf.yaml``, where there is one, above them
        those of the command line of ``holdfast run``, and ``configuration`` above all.
        """
        given = Configuration(configuration)
        told = run_settings(os.environ)
        if told is not None:
            given = given.layered_over(told)
        file = find_config_file(os.environ, Path.cwd())
        return StreamExecutionEnvironment(given.layered_over(read_config_file(file)) if file is not None else given)

    # -- settings

    def configure(self, configuration: Configuration) -> None:
        self._configuration.override(configuration)

    def get_config(self) -> ExecutionConfig:
        """How the program is executed. What is set on it holds for this environment."""
        return ExecutionConfig(self._configuration)

    def get_configuration(self) -> Configuration:
        return self._configuration

    def set_runtime_mode(self, execution_mode: RuntimeExecutionMode) -> StreamExecutionEnvironment:
        """STREAMING, which is the default, gives every result; BATCH gives the last ones, when the input has ended."""
        self._configuration.set_string(EXECUTION_MODE.key, execution_mode.name)
        return self

    def set_parallelism(self, parallelism: int) -> StreamExecutionEnvironment:
        self.get_config().set_parallelism(parallelism)
        return self

    def get_parallelism(self) -> int:
        """The configured parallelism; -1 when Spark's own default is used."""
        return self.get_config().get_parallelism()

    def set_max_parallelism(self, max_parallelism: int) -> StreamExecutionEnvironment:
        self.get_config().set_max_parallelism(max_parallelism)
        return self

    def get_max_parallelism(self) -> int:
        return self.get_config().get_max_parallelism()

    def enable_checkpointing(self, interval: int, mode: CheckpointingMode | None = None) -> StreamExecutionEnvironment:
        """Take a checkpoint every ``interval`` milliseconds, rounded up to the end of an epoch."""
        config = self.get_checkpoint_config().set_checkpoint_interval(interval)
        if mode is not None:
            config.set_checkpointing_mode(mode)
        return self

    def get_checkpoint_config(self) -> CheckpointConfig:
        return CheckpointConfig(self._configuration)

    def get_checkpoint_interval(self) -> int:
        return self.get_checkpoint_config().get_checkpoint_interval()

    def get_checkpointing_mode(self) -> CheckpointingMode:
        return self.get_checkpoint_config().get_checkpointing_mode()

    def get_checkpointing_consistency_mode(self) -> CheckpointingMode:
        return self.get_checkpointing_mode()

    def is_unaligned_checkpoints_enabled(self) -> bool:
        return self.get_checkpoint_config().is_unaligned_checkpoints_enabled()

    def is_force_unaligned_checkpoints(self) -> bool:
        return self.get_checkpoint_config().is_force_unaligned_checkpoints()

    def set_state_backend(self, state_backend: StateBackend) -> StreamExecutionEnvironment:
        """Write what the backend says into the configuration. PyFlink has it up to its version 1."""
        if not isinstance(state_backend, StateBackend):
            raise ProgramError(
                f"set_state_backend() takes a state backend such as EmbeddedRocksDBStateBackend(); got "
                f"{state_backend!r}. By name it is the option '{BACKEND.key}'."
            )
        state_backend.apply_to(self._configuration)
        return self

    def set_default_savepoint_directory(self, directory: str) -> StreamExecutionEnvironment:
        """Where savepoints go that are triggered without a directory."""
        self._configuration.set_string(SAVEPOINT_DIRECTORY.key, directory)
        return self

    def get_default_savepoint_directory(self) -> str | None:
        return self._configuration.get(SAVEPOINT_DIRECTORY)

    def disable_operator_chaining(self) -> StreamExecutionEnvironment:
        """Every operator in a task of its own."""
        self._configuration.set_string(OPERATOR_CHAINING.key, "false")
        return self

    def is_chaining_enabled(self) -> bool:
        return self._configuration.get(OPERATOR_CHAINING)

    def is_chaining_of_operators_with_different_max_parallelism_enabled(self) -> bool:
        """True: key groups belong to each operator of a task."""
        return True

    def set_restart_strategy(
        self, restart_strategy_configuration: RestartStrategyConfiguration
    ) -> StreamExecutionEnvironment:
        restart_strategy_configuration.apply_to(self._configuration)
        return self

    # -- sources

    def from_collection(self, collection: Iterable[Any], type_info: Any = None) -> DataStream:
        """The rows of a list, in order, by one subtask."""
        source = CollectionSource(list(collection), None if type_info is None else resolve(type_info))
        return self._add_source(source, "Collection Source")

    def from_source(
        self, source: Source, watermark_strategy: WatermarkStrategy, source_name: str, type_info: Any = None
    ) -> DataStream:
        if not isinstance(source, Source):
            raise ProgramError(
                f"from_source() takes a source such as FileSource.parquet(path); got {type(source).__name__}."
            )
        stream = self._add_source(source, source_name, type_info)
        if watermark_strategy.timestamp_assigner is None:
            if watermark_strategy.bound_ms is not None and source.has_record_times:
                return stream.assign_timestamps_and_watermarks(watermark_strategy)
            if watermark_strategy.bound_ms is not None:
                logger.warning(
                    "The watermark strategy of source '%s' has no timestamp assigner: its rows have no event time. "
                    "Add with_timestamp_assigner(...), or use WatermarkStrategy.no_watermarks().",
                    source_name,
                )
            return stream
        return stream.assign_timestamps_and_watermarks(watermark_strategy)

    def add_source(
        self, source_func: SourceFunction, source_name: str = "Custom Source", type_info: Any = None
    ) -> DataStream:
        """Rows of a source function, which keeps its position in operator state."""
        if not isinstance(source_func, SourceFunction):
            raise ProgramError(
                f"add_source() takes a SourceFunction; got {type(source_func).__name__}. Give a Source to "
                "from_source()."
            )
        node = self.add_node(source_name, SourceOperator, source_func, resolve(type_info), [])
        node.parallelism_limit = source_func.max_parallelism
        return DataStream(self, node)

    def from_data_frame(self, data_frame: Any, source_name: str = "DataFrame") -> DataStream:
        """The rows of a Spark DataFrame, which Spark itself reads and splits: a bounded one whole, in one epoch, a
        streaming one by its micro-batches. One with ``withWatermark()`` has event time by that. Of what was made of
        ``stream.to_data_frame()``, the rows that come of each epoch.
        """
        if isinstance(data_frame, StreamDataFrame):
            return self._views.stream_of(data_frame, source_name, engine_for(self._graph, self.job_settings()))
        if not hasattr(data_frame, "mapInArrow"):
            raise ProgramError(f"from_data_frame() takes a Spark DataFrame; got {type(data_frame).__name__}.")
        check_data_frame(source_name, data_frame)
        column = EventTimeColumn.of(data_frame)
        row_type = resolve(data_frame.schema)
        node = self.add_node(source_name, None, None, row_type, [], event_time=column is not None)
        node.data_frame, node.event_time_column = data_frame, column
        node.parallelism = 1
        return DataStream(self, node)

    def _add_source(self, source: Source, name: str, type_info: Any = None) -> DataStream:
        declared = type_info if type_info is not None else source.output_type()
        node = self.add_node(name, SourceOperator, source, resolve(declared), [])
        node.parallelism_limit = source.max_parallelism
        return DataStream(self, node)

    def create_input(self, input_format: Any, type_info: Any = None) -> DataStream:
        raise ProgramError(refusal("StreamExecutionEnvironment.create_input"))

    # -- SQL

    def create_temporary_view(
        self, view_path: str, data_stream: DataStream, event_time_column: str | None = None
    ) -> None:
        """The name by which ``sql`` reads a stream. With ``event_time_column`` the view has the event time of its rows
        as a column of that name, behind their own, and what a query passes on in it is the event time of its rows.
        """
        self._views.create(view_path, data_stream, event_time_column)

    def drop_temporary_view(self, view_path: str) -> bool:
        """Whether there was one. Queries that were made of it stay as they are."""
        return self._views.drop(view_path)

    def sql(self, query: str) -> DataStream:
        """Rows of a query, by Spark SQL, on the rows of one view, which may be joined with tables of the Spark session:
        a stateless one, which Spark runs on the rows of each epoch. ProgramError for any other.
        """
        return self._views.query(query, engine_for(self._graph, self.job_settings()))

    def data_frame_of(self, stream: DataStream, event_time_column: str | None) -> StreamDataFrame:
        """What ``stream.to_data_frame()`` gives."""
        return self._views.data_frame(stream, event_time_column, engine_for(self._graph, self.job_settings()))

    # -- running

    def execute(self, job_name: str | None = None) -> JobExecutionResult:
        """Run the program until it ends. JobExecutionError when it fails for good."""
        return self.execute_async(job_name).get_job_execution_result().result()

    def execute_async(self, job_name: str | None = None) -> JobClient:
        """Run the program in a thread of the driver."""
        settings = self.job_settings()
        graph, self._graph = self._graph, StreamGraph()
        job_id = parse_settings(self._configuration).job_id or secrets.token_hex(16)
        name = job_name or "Holdfast Streaming Job"
        if PLAN_VARIABLE in os.environ:
            print(_PLAN_TITLE, describe_plan(graph, job_id, name, settings), _PLAN_END, sep="\n")
            raise SystemExit(0)
        intercept(graph, self._configuration)
        # Before the job begins: a port that is taken, or a package that is missing, is told instead of a job.
        publication = publication_for(self._configuration)
        job = submit(graph, job_id, name, settings)
        publication.publish(job)
        return JobClient(job)

    def job_settings(self) -> JobSettings:
        """What the configuration says about the job that ``execute`` would run."""
        parsed = parse_settings(self._configuration)
        batch = runs_as_batch(parsed.mode, self._graph)
        if batch:
            parsed = _batch_settings(parsed, self._configuration)
        return JobSettings(
            checkpoint=parsed.checkpoint,
            restart=parsed.restart,
            backend=parsed.backend,
            epoch=parsed.epoch,
            recovery=parsed.recovery,
            parallelism=parsed.parallelism,
            max_parallelism=parsed.max_parallelism,
            batch=batch,
            chaining=parsed.chaining,
            spark=parsed.spark,
            program=parsed.program,
            dependencies=parsed.dependencies,
            zookeeper=parsed.zookeeper,
            text_form=parsed.text_form,
            failures=parsed.failures,
        )

    def get_execution_plan(self) -> str:
        """The program so far as Flink's JSON: nodes, their parallelism and their inputs."""
        return describe_plan(self._graph, "", "", self.job_settings())

    def close(self) -> None:
        """Nothing is held open: the Spark session belongs to who made it, and jobs end by themselves."""

    def collect(self, collection: Collection, job_name: str | None) -> CloseableIterator:
        """Run the program and give the rows that ``collection`` receives, as they are published."""
        client = self.execute_async(job_name)
        client.on_end(collection.finish)

        def close() -> None:
            client.cancel().result()
            collection.close()

        return CloseableIterator(iter(collection), close)

    def get_stream_graph(self) -> StreamGraph:
        """The program as far as it was written since the last ``execute``."""
        return self._graph

    def add_node(
        self,
        name: str,
        factory: OperatorFactory | None,
        body: Any,
        output_type: TypeInformation,
        inputs: list[Connection],
        event_time: bool | None = None,
    ) -> Node:
        """Add an operator to the program. Used by streams."""
        return self._graph.add(name, factory, body, output_type, inputs, event_time)


def _batch_settings(parsed: ParsedSettings, configuration: Configuration) -> ParsedSettings:
    """A batch has no checkpoints: one that fails begins anew, if anything lets it."""
    if parsed.recovery.path is not None:
        raise ProgramError(
            f"The program runs in BATCH mode and is to start from the snapshot {parsed.recovery.path}: a batch begins "
            "with its input. Leave the snapshot out, or set RuntimeExecutionMode.STREAMING."
        )
    if parsed.checkpoint.enabled:
        logger.info("The program runs in BATCH mode: its checkpoint interval has no effect.")
    return replace(
        parsed,
        checkpoint=replace(parsed.checkpoint, interval_ms=None),
        restart=restart_settings(configuration, checkpointing=False),
    )
