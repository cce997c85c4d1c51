"""What ``print`` and the encoder of texts write, and the order of what is collected."""

import datetime
from decimal import Decimal

from pyflink.common import Encoder, Instant, Row, RowKind, Types
from pyflink.datastream.connectors.file_system import FileSink, OutputFileConfig, RollingPolicy

from tests.parity.case import Order, program

PAIR = Types.TUPLE([Types.STRING(), Types.INT()])
NAMED = Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()])
PAIRS = [("hi", 4), ("hello", 5)]


def printed(env, stream, *identifier):
    stream.print(*identifier)
    env.execute("print")


def one(env):
    return env.from_collection([0], Types.INT())


@program(7)
def printed_tuples(env, out):
    printed(env, env.from_collection(PAIRS, PAIR).map(lambda pair: pair, PAIR))


@program(7)
def printed_undeclared(env, out):
    given = env.from_collection(PAIRS, PAIR).flat_map(lambda pair: [pair, list(pair), {"a": pair[1]}, None, 1.5, True])
    printed(env, given)


@program(7)
def printed_rows(env, out):
    rows = env.from_collection([(1, "a"), (2, None)], NAMED)
    printed(env, rows.map(lambda row: row, NAMED).union(rows))


@program(7)
def printed_rows_without_names(env, out):
    kind = Types.ROW([Types.INT(), Types.STRING()])
    printed(env, env.from_collection([(1, "a"), (2, None)], kind).map(lambda row: row, kind))


def kinds_of_rows(_):
    for kind in RowKind:
        row = Row(1, kind.name)
        row.set_row_kind(kind)
        yield row


@program(7)
def printed_kinds_of_rows(env, out):
    printed(env, one(env).flat_map(kinds_of_rows, NAMED))


SCALARS = Types.TUPLE(
    [
        *(Types.BOOLEAN(), Types.BYTE(), Types.SHORT(), Types.INT(), Types.LONG()),
        *(Types.FLOAT(), Types.DOUBLE(), Types.STRING(), Types.BIG_DEC()),
    ]
)
VALUES = (True, 1, 2, 3, 4, 0.1, 1e20, "text", Decimal("1.50"))


@program(7)
def printed_scalars(env, out):
    printed(env, one(env).map(lambda _: VALUES, SCALARS))


@program(7)
def printed_doubles(env, out):
    values = [1.0, 100.0, 1e7, 12345678.9, 1e-3, 1e-4, 0.1, 1 / 3, -0.0, float("inf"), float("nan"), 1e300, 123456.0]
    printed(env, one(env).flat_map(lambda _: values, Types.DOUBLE()))


@program(7)
def printed_floats(env, out):
    values = [1.0, 1e7, 0.1, 1 / 3, 16777216.0, 1e-5]
    printed(env, one(env).flat_map(lambda _: values, Types.FLOAT()))


TIMES = Types.TUPLE([Types.SQL_DATE(), Types.SQL_TIME(), Types.SQL_TIMESTAMP(), Types.INSTANT()])


@program(7)
def printed_times(env, out):
    values = [
        (
            datetime.date(2021, 1, 9),
            datetime.time(12, 3, 4),
            datetime.datetime(2018, 3, 11, 3, 0, 0, 123000),
            Instant.of_epoch_milli(1234),
        ),
        (
            datetime.date(1969, 12, 31),
            datetime.time(0, 0),
            datetime.datetime(2018, 3, 11, 3, 0),
            Instant.of_epoch_milli(86_400_000),
        ),
    ]
    printed(env, one(env).flat_map(lambda _: values, TIMES))


@program(7)
def printed_collections(env, out):
    kind = Types.ROW(
        [
            Types.LIST(Types.INT()),
            Types.MAP(Types.STRING(), Types.INT()),
            Types.TUPLE([Types.INT(), Types.STRING()]),
            NAMED,
            Types.BASIC_ARRAY(Types.STRING()),
            Types.PRIMITIVE_ARRAY(Types.INT()),
        ]
    )
    printed(env, one(env).map(lambda _: Row([1, 2], {"a": 1}, (1, "b"), Row(2, "c"), ["d", "e"], [1, 2]), kind))


@program(7)
def printed_with_an_identifier(env, out):
    printed(env, env.from_collection(PAIRS, PAIR).map(lambda pair: pair[1], Types.INT()), "mine")


@program(7)
def printed_twice(env, out):
    """Two sinks, and a parallelism of their own."""
    pairs = env.from_collection(PAIRS, PAIR)
    pairs.map(lambda pair: pair[0], Types.STRING()).print("first").set_parallelism(1)
    pairs.map(lambda pair: pair[1], Types.INT()).print("second").name("named")
    env.execute("print")


def written(env, stream, out):
    sink = FileSink.for_row_format(str(out / "out"), Encoder.simple_string_encoder())
    config = OutputFileConfig.builder().with_part_prefix("rows").with_part_suffix(".txt").build()
    policy = RollingPolicy.default_rolling_policy()
    stream.sink_to(sink.with_output_file_config(config).with_rolling_policy(policy).build())
    env.execute("write")


@program(7)
def encoded_tuples(env, out):
    written(env, env.from_collection(PAIRS, PAIR).map(lambda pair: pair, PAIR), out)


@program(7)
def encoded_rows(env, out):
    written(env, one(env).flat_map(kinds_of_rows, NAMED), out)


@program(7)
def encoded_scalars(env, out):
    written(env, one(env).map(lambda _: VALUES, SCALARS), out)


@program(7)
def encoded_texts(env, out):
    written(env, one(env).flat_map(lambda _: ["a", "grün", ""], Types.STRING()), out)


@program(7, order=Order.ALWAYS)
def collected_in_order(env, out):
    """A source has one subtask; a collect takes its rows one after the other."""
    return env.from_collection(list(range(50)), Types.LONG())


@program(7, order=Order.ALWAYS, modes=("STREAMING",))
def collected_in_order_behind_a_map(env, out):
    """Whose subtasks have one row out of two: PyFlink gives them as they come, here the order of one subtask counts."""
    return env.from_collection(list(range(50)), Types.LONG()).map(lambda n: n, Types.LONG()).set_parallelism(1)


@program(7)
def collected_with_a_limit(env, out):
    rows = env.from_collection(list(range(50)), Types.LONG()).execute_and_collect(limit=3)
    return [str(len(list(rows)))]


@program(7)
def read_with_next(env, out):
    """Rows taken one by one from an iterator that is closed before its end."""
    with env.from_collection([1, 2, 3], Types.LONG()).execute_and_collect() as rows:
        first = rows.next()
        return [str(first), str(list(rows))]
