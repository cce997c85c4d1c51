"""Jobs that fail: without a strategy at once, with one as often as it says, and what is written is exact."""

from pathlib import Path

from pyflink.common import Configuration, Encoder, Types
from pyflink.datastream import FlatMapFunction, KeyedProcessFunction, MapFunction, RuntimeContext
from pyflink.datastream.connectors.file_system import FileSink
from pyflink.datastream.state import ValueStateDescriptor

from tests.parity.case import program


class Fails(MapFunction):
    def map(self, value):
        if value == 3:
            raise ValueError("three")
        return value


def numbers(env, count=6):
    return env.from_collection(list(range(count)), Types.INT())


@program(10, fails="ValueError: three")
def no_restart(env, out):
    return numbers(env).map(Fails(), Types.INT())


def with_restarts(env, attempts):
    env.configure(
        Configuration.from_dict(
            {
                "restart-strategy.type": "fixed-delay",
                "restart-strategy.fixed-delay.attempts": str(attempts),
                "restart-strategy.fixed-delay.delay": "10 ms",
            }
        )
    )


@program(10, fails="all 2 restarts .*ValueError: three")
def attempts_are_used_up(env, out):
    with_restarts(env, 2)
    return numbers(env).map(Fails(), Types.INT())


class FailsFirst(MapFunction):
    """Fails as often as it is told; a file remembers."""

    def __init__(self, file, times):
        self.file = Path(file)
        self.times = times

    def map(self, value):
        if value == 3 and self.file.stat().st_size < self.times:
            with self.file.open("a") as file:
                file.write(".")
            raise ValueError("again")
        return value


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        self.count.update((self.count.value() or 0) + 1)
        yield f"{ctx.get_current_key()} {self.count.value()}"


def failing(env, out, times):
    """Numbers, of which one makes its subtask fail so often, before the first checkpoint."""
    with_restarts(env, 3)
    env.enable_checkpointing(3_600_000)
    env.configure(Configuration.from_dict({"execution.checkpointing.dir": (out / "checkpoints").as_uri()}))
    memory = out / "failures"
    memory.write_text("")
    return numbers(env, 8).map(FailsFirst(str(memory), times), Types.INT())


def written(env, texts, out):
    texts.sink_to(FileSink.for_row_format(str(out / "out"), Encoder.simple_string_encoder()).build())
    env.execute("restarted")


@program(10)
def restarted(env, out):
    """The last attempt begins anew, with empty state; a file sink shows no row of those before it."""
    keyed = failing(env, out, 2).key_by(lambda n: n % 2, key_type=Types.INT())
    written(env, keyed.process(Count(), Types.STRING()), out)


class Attempt(MapFunction):
    def open(self, runtime_context: RuntimeContext):
        self.attempt = runtime_context.get_attempt_number()

    def map(self, value):
        return f"{value} {self.attempt}"


@program(modes=("STREAMING",), parallelisms=(1,))
def attempt_numbers(env, out):
    """Rows of the last attempt. PyFlink's folder has a row of one that failed, or has not: from run to run."""
    texts = failing(env, out, 2).map(Attempt(), Types.STRING())
    written(env, texts.filter(lambda text: text.endswith(" 2")), out)


class Opens(FlatMapFunction):
    def open(self, runtime_context: RuntimeContext):
        raise ValueError("it does not open")

    def flat_map(self, value):
        yield value


@program(10, fails="ValueError: it does not open", parallelisms=(1,))
def does_not_open(env, out):
    return numbers(env).flat_map(Opens(), Types.INT())
