"""Names that are being built elsewhere: nothing is said of them until they are here."""

from __future__ import annotations

#: Paths of names, or of what they are in.
EXPECTED = (
    "common.ExecutionConfig",
    "common.execution_config",
    "common.watermark_strategy.WatermarkStrategy.with_watermark_alignment",
    "datastream.AsyncDataStream",
    "datastream.AsyncFunction",
    "datastream.AsyncRetryPredicate",
    "datastream.AsyncRetryStrategy",
    "datastream.async_data_stream",
    "datastream.async_retry_predicates",
    "datastream.async_retry_strategies",
    "datastream.functions.AsyncFunction",
    "datastream.functions.AsyncFunctionDescriptor",
    "datastream.functions.AsyncRetryPredicate",
    "datastream.functions.AsyncRetryStrategy",
    "datastream.data_stream.DataStream.get_execution_config",
    "datastream.data_stream.KeyedStream.get_execution_config",
    *(
        f"datastream.stream_execution_environment.StreamExecutionEnvironment.{name}"
        for name in (
            "add_classpaths",
            "add_jars",
            "add_python_archive",
            "get_config",
            "set_python_executable",
            "set_python_requirements",
        )
    ),
)


def is_expected(path: str) -> bool:
    return any(path == one or path.startswith(f"{one}.") for one in EXPECTED)
