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
from holdfast.common.job_client import JobClient
from holdfast.common.job_execution_result import JobExecutionResult
from holdfast.common.options import EXECUTION_MODE, OPERATOR_CHAINING, SAVEPOINT_DIRECTORY
from holdfast.common.restart_strategy import RestartStrategyConfiguration
from holdfast.common.run_settings import PLAN_VARIABLE, run_settings
from holdfast.common.settings_parser import ParsedSettings, parse_settings, restart_settings
from holdfast.common.spark_options import PYTHON_FILES
from holdfast.common.watermark_strategy import WatermarkStrategy
from holdfast.connectors.collect import Collection
from holdfast.connectors.collection import CollectionSource
from holdfast.datastream.checkpoint_config import CheckpointConfig
from holdfast.datastream.checkpointing_mode import CheckpointingMode
from holdfast.datastream.coverage import note_accepted, refusal
from holdfast.datastream.data_stream import CloseableIterator, DataStream
from holdfast.datastream.engines import submit
from holdfast.datastream.execution_mode import RuntimeExecutionMode
from holdfast.datastream.interception import intercept
from holdfast.datastream.plan_description import describe_plan
from holdfast.datastream.publication import publication_for
from holdfast.errors import ProgramError
from holdfast.graph.execution_mode import runs_as_batch
from holdfast.graph.job_graph import JobSettings
from holdfast.graph.stream_graph import Connection, Node, StreamGraph
from holdfast.runtime.endpoints import SourceOperator
from holdfast.runtime.event_time_column import EventTimeColumn
from holdfast.runtime.plan import OperatorFactory
from holdfast.runtime.source import Source, SourceFunction
from holdfast.runtime.windowing.row_path import RowPath
from holdfast.spark.frames import check_data_frame
from holdfast.types.resolve import resolve
from holdfast.types.typeinfo import TypeInformation

logger = logging.getLogger(__name__)

_MAX_PARALLELISM = 32768
_PLAN_TITLE = "----------------------- Execution Plan -----------------------"
_PLAN_END = "-" * 62


class StreamExecutionEnvironment:
    """Collects a program and runs it on the active Spark session, or on a local one made for it."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._graph = StreamGraph()
        self._buffer_timeout = -1
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
        self._configuration = configuration.layered_over(self._configuration)

    def get_configuration(self) -> Configuration:
        return self._configuration

    def set_runtime_mode(self, execution_mode: RuntimeExecutionMode) -> StreamExecutionEnvironment:
        """STREAMING, which is the default, gives every result; BATCH gives the last ones, when the input has ended."""
        self._configuration.set_string(EXECUTION_MODE.key, execution_mode.name)
        return self

    def set_parallelism(self, parallelism: int) -> StreamExecutionEnvironment:
        if not isinstance(parallelism, int) or not 1 <= parallelism <= _MAX_PARALLELISM:
            raise ProgramError(
                f"The parallelism must be a whole number from 1 to {_MAX_PARALLELISM}; got {parallelism!r}."
            )
        self._configuration.set_string("parallelism.default", str(parallelism))
        return self

    def get_parallelism(self) -> int:
        """The configured parallelism; -1 when Spark's own default is used."""
        return parse_settings(self._configuration).parallelism or -1

    def set_max_parallelism(self, max_parallelism: int) -> StreamExecutionEnvironment:
        if not isinstance(max_parallelism, int) or not 1 <= max_parallelism <= _MAX_PARALLELISM:
            raise ProgramError(
                f"The maximum parallelism must be a whole number from 1 to {_MAX_PARALLELISM}; got {max_parallelism!r}."
            )
        self._configuration.set_string("pipeline.max-parallelism", str(max_parallelism))
        return self

    def get_max_parallelism(self) -> int:
        return parse_settings(self._configuration).max_parallelism or -1

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

    def enable_changelog_state_backend(self, enabled: bool) -> StreamExecutionEnvironment:
        note_accepted("StreamExecutionEnvironment.enable_changelog_state_backend")
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

    def set_buffer_timeout(self, timeout_millis: int) -> StreamExecutionEnvironment:
        note_accepted("StreamExecutionEnvironment.set_buffer_timeout")
        self._buffer_timeout = timeout_millis
        return self

    def get_buffer_timeout(self) -> int:
        return self._buffer_timeout

    def set_restart_strategy(
        self, restart_strategy_configuration: RestartStrategyConfiguration
    ) -> StreamExecutionEnvironment:
        restart_strategy_configuration.apply_to(self._configuration)
        return self

    def add_python_file(self, file_path: str) -> None:
        """Modules that the program's functions are in, for executors that do not have them: a Python file, a folder or
        an archive (``.zip``, ``.egg``, ``.whl``). They are sent when a job starts.
        """
        known = self._configuration.get(PYTHON_FILES)
        self._configuration.set_string(PYTHON_FILES.key, PYTHON_FILES.kind.show((*known, os.fspath(file_path))))

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
        streaming one by its micro-batches. One with ``withWatermark()`` has event time by that.
        """
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

    def register_cached_file(self, file_path: str, name: str, executable: bool = False) -> None:
        raise ProgramError(refusal("StreamExecutionEnvironment.register_cached_file"))

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
            parameters=self._configuration.to_dict(),
            zookeeper=parsed.zookeeper,
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
