"""The average of every three values per key on Holdfast, written as for PyFlink."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.data import SCHEMA
from benchmarks.jobs.counting_sink import CountingDiscardSink
from benchmarks.jobs.protocol import SPARK_SETTINGS, Epoch, JobArguments, Outcome
from holdfast.common import Configuration, Row, Types, WatermarkStrategy
from holdfast.datastream import FlatMapFunction, RuntimeContext, StreamExecutionEnvironment
from holdfast.datastream.connectors.file_system import FileSource
from holdfast.datastream.state import ValueStateDescriptor


class CountWithKeyedState(FlatMapFunction):
    """State (sum, count); every third value of a key emits ``sum // count`` and clears it."""

    def open(self, runtime_context: RuntimeContext) -> None:
        descriptor = ValueStateDescriptor("average", Types.TUPLE([Types.LONG(), Types.LONG()]))
        self.sum = runtime_context.get_state(descriptor)

    def flat_map(self, value: Row) -> Iterator[tuple[int, int]]:
        current = self.sum.value()
        if current is None:
            current = (0, 0)
        current = (current[0] + value[1], current[1] + 1)
        if current[1] >= 3:
            self.sum.clear()
            yield value[0], current[0] // current[1]
        else:
            self.sum.update(current)


def configuration(arguments: JobArguments) -> Configuration:
    """The variant is the backend, with ``-unchecked`` for a run without checkpoints."""
    backend, _, unchecked = arguments.variant.partition("-")
    config = Configuration()
    for name, value in SPARK_SETTINGS.items():
        config.set_string(name, value)
    config.set_string("parallelism.default", "2")
    config.set_string("state.backend.type", backend)
    # A run with a restart in it is no measurement.
    config.set_string("restart-strategy.type", "none")
    config.set_string("holdfast.state.local-dir", str(arguments.scratch / "state"))
    config.set_string("holdfast.epoch.max-rows", str(arguments.epoch_rows))
    # Epochs of the same size as the peers' micro-batches, however slow the machine.
    config.set_string("holdfast.epoch.max-time", "10 min")
    if not unchecked:
        # Shorter than any epoch: a checkpoint is due at each of them, as Spark commits every micro-batch.
        config.set_string("execution.checkpointing.interval", "10 ms")
        config.set_string("execution.checkpointing.dir", str(arguments.scratch / "checkpoints"))
    return config


def main() -> None:
    arguments = JobArguments.parse()
    counts = arguments.scratch / "counts"
    counts.mkdir()
    sink = CountingDiscardSink(counts)
    env = StreamExecutionEnvironment.get_execution_environment(configuration(arguments))
    source = FileSource.parquet(str(arguments.data), SCHEMA, bounded=True)
    averages = (
        env.from_source(source, WatermarkStrategy.no_watermarks(), "events")
        .key_by("key")
        .flat_map(CountWithKeyedState(), output_type=Types.TUPLE([Types.LONG(), Types.LONG()]))
    )
    averages.sink_to(sink)
    records = env.execute("average of every three values").get_history().epochs
    epochs = [Epoch(record.epoch, record.rows, record.started, record.finished) for record in records if record.rows]
    Outcome(epochs, sink.committed()).write(arguments.result)


if __name__ == "__main__":
    main()
