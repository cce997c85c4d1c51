"""What connects and shapes streams: side outputs, unions, connected inputs, rolling aggregates, partitions."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.datastream import (
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    FilterFunction,
    FlatMapFunction,
    KeySelector,
    MapFunction,
    OutputTag,
    ProcessFunction,
    ReduceFunction,
    RuntimeContext,
)
from pyflink.datastream.connectors.number_seq import NumberSequenceSource

from tests.parity.case import Order, facts, program, told

PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])
TRIPLE = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()])
TRIPLES = [("a", 3, 1), ("b", 2, 2), ("a", 5, 3), ("b", 2, 4), ("a", 3, 5), ("a", 1, 6), ("b", 9, 7), ("a", 5, 8)]
ODD = OutputTag("odd", Types.LONG())
TEXT = OutputTag("text", Types.STRING())


def numbers(env, count=6):
    return env.from_collection(list(range(count)), Types.LONG())


class Split(ProcessFunction):
    def process_element(self, value, ctx: ProcessFunction.Context):
        if value % 2:
            yield ODD, value
        else:
            yield value
        yield TEXT, f"<{value}>"


@program()
def side_outputs(env, out):
    main = numbers(env).process(Split(), Types.LONG())
    texts = main.map(lambda value: f"main {value}", output_type=Types.STRING())
    odd = main.get_side_output(ODD).map(lambda value: f"odd {value}", output_type=Types.STRING())
    return texts.union(odd, main.get_side_output(TEXT))


class Double(MapFunction):
    def map(self, value):
        return 2 * value


class Even(FilterFunction):
    def filter(self, value):
        return value % 2 == 0


class Repeat(FlatMapFunction):
    def flat_map(self, value):
        return [value] * (value % 3)


@program(order=Order.ALONE)
def classes_of_functions(env, out):
    return numbers(env, 20).map(Double(), Types.LONG()).filter(Even()).flat_map(Repeat(), Types.LONG())


@program(order=Order.ALONE)
def plain_functions(env, out):
    return (
        numbers(env, 20)
        .map(lambda n: n + 1, Types.LONG())
        .filter(lambda n: n % 3 > 0)
        .flat_map(lambda n: range(n % 3), Types.LONG())
    )


@program()
def union_of_several(env, out):
    one, other = numbers(env), env.from_collection([10, 11], Types.LONG())
    return one.union(other, one.map(lambda n: -n, Types.LONG())).filter(lambda n: n != 0)


class Words(CoMapFunction):
    def map1(self, value):
        return f"number {value}"

    def map2(self, value):
        return f"word {value}"


class Some(CoFlatMapFunction):
    def flat_map1(self, value):
        yield from [f"number {value}"] * (value % 3)

    def flat_map2(self, value):
        if value != "b":
            return [value, value.upper()]


class Both(CoProcessFunction):
    def process_element1(self, value, ctx: CoProcessFunction.Context):
        yield f"1: {value}"

    def process_element2(self, value, ctx: CoProcessFunction.Context):
        yield f"2: {value}"
        yield TEXT, f"aside: {value}"


@program()
def connected_streams(env, out):
    words = env.from_collection(["a", "b", "c"], Types.STRING())
    connected = numbers(env).connect(words)
    processed = connected.process(Both(), Types.STRING())
    return connected.map(Words(), Types.STRING()).union(
        connected.flat_map(Some(), Types.STRING()), processed, processed.get_side_output(TEXT)
    )


class Timestamps(ProcessFunction):
    def process_element(self, value, ctx: ProcessFunction.Context):
        yield value, ctx.timestamp()


@program()
def rows_without_a_timestamp(env, out):
    return numbers(env).process(Timestamps())


def keyed(env):
    return env.from_collection(TRIPLES, TRIPLE).key_by(lambda row: row[0], key_type=Types.STRING())


class Larger(ReduceFunction):
    def reduce(self, value1, value2):
        return value1 if value1[1] >= value2[1] else value2


@program()
def reduced(env, out):
    return keyed(env).reduce(Larger())


@program()
def sums(env, out):
    return keyed(env).sum(1).union(keyed(env).sum(2))


@program()
def extremes(env, out):
    return keyed(env).min(1).union(keyed(env).max(1))


REALS = [("nan first", float("nan")), ("nan first", 1.0), ("nan last", 1.0), ("nan last", float("nan"))]
ZEROS = [("plus first", 0.0), ("plus first", -0.0), ("minus first", -0.0), ("minus first", 0.0)]


@program()
def extremes_of_reals(env, out):
    rows = env.from_collection(REALS + ZEROS, Types.TUPLE([Types.STRING(), Types.DOUBLE()]))
    by_key = rows.key_by(lambda row: row[0], key_type=Types.STRING())
    return by_key.min(1).union(by_key.max(1))


@program()
def rows_of_extremes(env, out):
    return keyed(env).min_by(1).union(keyed(env).max_by(1))


NAMED = Types.ROW_NAMED(["key", "n"], [Types.STRING(), Types.LONG()])


@program()
def aggregates_by_name(env, out):
    rows = env.from_collection([("a", 3), ("b", 1), ("a", 2), ("b", 5)], NAMED)
    by_key = rows.key_by(lambda row: row[0], key_type=Types.STRING())
    return by_key.sum("n").union(by_key.min("n"), by_key.max_by("n"))


class FirstField(KeySelector):
    def get_key(self, value):
        return value[0]


@program()
def key_selectors(env, out):
    keys = env.from_collection(TRIPLES, TRIPLE).key_by(FirstField(), key_type=Types.STRING())
    return (
        keys.map(lambda row: (row[0], row[1]), PAIR)
        .key_by(lambda pair: pair[1])
        .reduce(lambda one, other: (one[0] + other[0], one[1]))
    )


class Where(MapFunction):
    def open(self, runtime_context: RuntimeContext):
        self.subtasks = runtime_context.get_number_of_parallel_subtasks()
        self.subtask = runtime_context.get_index_of_this_subtask()
        self.attempt = runtime_context.get_attempt_number()
        self.name = runtime_context.get_task_name()
        self.most = runtime_context.get_max_number_of_parallel_subtasks()

    def map(self, value):
        return f"{value} {self.subtasks} {0 <= self.subtask < self.subtasks} {self.attempt} {self.most}"


@program(modes=("STREAMING",))
def runtime_context(env, out):
    """A batch of Flink chooses its parallelism by the size of its data."""
    return numbers(env).rebalance().map(Where(), Types.STRING()).name("where")


class Place(MapFunction):
    def open(self, runtime_context: RuntimeContext):
        self.subtask = runtime_context.get_index_of_this_subtask()

    def map(self, value):
        return value, self.subtask


@program()
def partitions(env, out):
    """None loses or repeats a row."""
    one = numbers(env)
    return (
        one.shuffle()
        .map(Double(), Types.LONG())
        .union(
            one.rescale().map(Double(), Types.LONG()),
            one.rebalance().map(Double(), Types.LONG()),
            one.forward().map(Double(), Types.LONG()).set_parallelism(1),
        )
    )


@program(modes=("STREAMING",))
def broadcast(env, out):
    """Every subtask has all rows."""
    return numbers(env).broadcast().map(Double(), Types.LONG())


@program()
def projected(env, out):
    return env.from_collection(TRIPLES, TRIPLE).project(2, 0)


@program()
def sequences(env, out):
    source = NumberSequenceSource(1, 20)
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())


@program()
def settings_of_operators(env, out):
    """They change how a program runs, not what it gives."""
    shaped = numbers(env).map(Double(), Types.LONG()).name("double").uid("double").set_parallelism(1)
    shaped = shaped.start_new_chain().filter(Even()).disable_chaining().slot_sharing_group("default")
    return shaped.map(Double(), Types.LONG()).set_max_parallelism(16).set_description("twice")


@program()
def one_subtask(env, out):
    return numbers(env).map(Place()).force_non_parallel().map(repr, Types.STRING())


@facts(8)
def facts_of_streams(env, __):
    mapped = numbers(env).map(Double(), Types.LONG()).name("double").set_parallelism(1)
    return told(
        lambda: mapped.get_name(),
        lambda: str(mapped.get_type()),
        lambda: str(numbers(env).map(Double()).get_type()),
        lambda: str(env.get_parallelism()),
        lambda: str(env.get_max_parallelism()),
        lambda: str(env.get_buffer_timeout()),
        lambda: str(env.is_chaining_enabled()),
        lambda: str(env.set_buffer_timeout(7).get_buffer_timeout()),
        lambda: str(env.disable_operator_chaining().is_chaining_enabled()),
        lambda: str(env.set_max_parallelism(64).get_max_parallelism()),
    )


@program()
def limited_and_empty(env, out):
    empty = numbers(env).filter(lambda n: n > 100)
    by_key = empty.key_by(lambda n: n, key_type=Types.LONG()).reduce(lambda one, other: one + other)
    return by_key.union(env.from_collection([7], Types.LONG()))
