"""SQL in the middle of a program: PyFlink's tables, and here Spark SQL on a view of a stream."""

from pyflink.common import Duration, Row, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream.window import TumblingEventTimeWindows

from tests.parity.case import program

KIND = Types.ROW_NAMED(["name", "amount"], [Types.STRING(), Types.LONG()])
PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])
ROWS = [Row("tea", 3), Row("milk", 12), Row("salt", 7), Row("tea", 20)]


def queried(env, rows, query, view="orders"):
    """The rows of a query on a view of rows."""
    if hasattr(env, "sql"):
        env.create_temporary_view(view, rows)
        return env.sql(query)
    from pyflink.table import StreamTableEnvironment

    tables = StreamTableEnvironment.create(env)
    tables.create_temporary_view(view, tables.from_data_stream(rows))
    return tables.to_data_stream(tables.sql_query(query))


def orders(env):
    return env.from_collection(ROWS, KIND)


@program(9)
def filtered_by_sql(env, out):
    found = queried(env, orders(env), "SELECT UPPER(name) AS name, amount * 2 AS twice FROM orders WHERE amount > 5")
    return found.map(lambda row: f"{row[0]} {row[1]}", Types.STRING())


@program(9)
def keyed_behind_sql(env, out):
    """Rows go from functions into a query, and from there into keyed state. In which order is open."""
    given = orders(env).map(lambda row: Row(row.name, row.amount + 1), KIND)
    found = queried(env, given, "SELECT name, amount FROM orders WHERE name <> 'salt'")
    pairs = found.map(lambda row: (f"{row[0]} above {row[1] // 100}", 1), PAIR)
    return pairs.key_by(lambda pair: pair[0], key_type=Types.STRING()).sum(1)


@program(9)
def a_query_behind_a_query(env, out):
    """Each sees the columns of the one before."""
    dear = queried(env, orders(env), "SELECT name, amount * 1.5E0 AS price FROM orders WHERE amount >= 7")
    kind = Types.ROW_NAMED(["name", "price"], [Types.STRING(), Types.DOUBLE()])
    given = dear.map(lambda row: Row(row[0], row[1]), kind)
    found = queried(env, given, "SELECT price, CHAR_LENGTH(name) AS letters FROM dear WHERE price > 15", "dear")
    return found.map(lambda row: f"{row[0]} {row[1]}", Types.STRING())


@program(9)
def nulls_and_cases_in_sql(env, out):
    given = env.from_collection([*ROWS, Row(None, 5), Row("rice", None)], KIND)
    found = queried(
        env,
        given,
        """
        SELECT COALESCE(name, 'nobody') AS name, CASE WHEN amount > 10 THEN 'much' WHEN amount > 0 THEN 'little' END,
            amount IS NULL, name LIKE '%t%'
        FROM orders
        """,
    )
    return found.map(lambda row: f"{row[0]} {row[1]} {row[2]} {row[3]}", Types.STRING())


class Amount(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


@program(9, modes=("STREAMING",))
def windows_behind_sql(env, out):
    """As a batch, a job of PyFlink 2.3.0 with a window of event time does not come to its end."""
    found = queried(env, orders(env), "SELECT name, amount FROM orders WHERE name LIKE '%a%' OR amount > 10")
    pairs = found.map(lambda row: ("all", row[1]), PAIR)
    timed = pairs.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(100)).with_timestamp_assigner(Amount())
    )
    windows = TumblingEventTimeWindows.of(Time.milliseconds(15))
    return (
        timed.key_by(lambda pair: pair[0], key_type=Types.STRING())
        .window(windows)
        .reduce(lambda one, other: (one[0], one[1] + other[1]))
    )
