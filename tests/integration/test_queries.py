"""Queries in the middle of programs: Spark makes of the rows of each epoch what it makes of all at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions

from holdfast.common import Row, Time, Types, WatermarkStrategy
from holdfast.common.watermark_strategy import TimestampAssigner
from holdfast.datastream import DataStream, ProcessWindowFunction, StreamExecutionEnvironment
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.datastream.window import TumblingEventTimeWindows
from holdfast.errors import FunctionError, JobExecutionError, ProgramError
from tests.integration.programs import Scripted, environment, published
from tests.kit.faults import FaultPlan

pytestmark = pytest.mark.slow

ORDER = Types.ROW_NAMED(
    ["id", "user", "amount", "tags"], [Types.LONG(), Types.STRING(), Types.LONG(), Types.LIST(Types.STRING())]
)
EPOCHS, ROWS = 5, 12
PLANS = pytest.mark.parametrize("internals", ["auto", "off"])


def orders(epochs: int = EPOCHS) -> list[list[Row]]:
    def order(number: int) -> Row:
        return Row.factory(["id", "user", "amount", "tags"])(
            [number, "abcd"[number % 4], number * 7 % 31, ["x", "y", "z"][: number % 4]]
        )

    return [[order(epoch * ROWS + place) for place in range(ROWS)] for epoch in range(epochs)]


def order_stream(env: StreamExecutionEnvironment, epochs: int = EPOCHS) -> DataStream:
    rows = env.from_source(Scripted(orders(epochs)), WatermarkStrategy.no_watermarks(), "orders", ORDER)
    return rows.rebalance().map(lambda row: row, ORDER)


@contextmanager
def tables(spark: Any) -> Iterator[None]:
    users = "SELECT * FROM VALUES ('a', 'Ann'), ('b', 'Bob'), ('d', 'Dora') AS t(user, name)"
    spark.sql(users).createOrReplaceTempView("users")
    spark.range(0, 100, 1, 3).selectExpr("id % 10 AS k", "id").groupBy("k").count().createOrReplaceTempView("counted")
    spark.udf.register("shout", lambda text: f"{text}!")
    try:
        yield
    finally:
        for name in ("users", "counted", "orders"):
            spark.catalog.dropTempView(name)


def by_spark_alone(spark: Any, query: str, epochs: int = EPOCHS) -> list[tuple[Any, ...]]:
    """The oracle: the same text, on a table that has all rows."""
    rows = [tuple(row) for epoch in orders(epochs) for row in epoch]
    frame = spark.createDataFrame(rows, "id long, user string, amount long, tags array<string>")
    frame.createOrReplaceTempView("orders")
    try:
        return sorted(map(tuple, spark.sql(query).collect()))
    finally:
        spark.catalog.dropTempView("orders")


QUERIES = {
    "columns and conditions": "SELECT id, upper(user) AS u, amount / 4 AS quarter FROM orders WHERE amount > 9;",
    "no row": "SELECT id FROM orders WHERE amount < 0",
    "one column of no field": "SELECT 1 AS one FROM orders -- every row",
    "exploded": "WITH lines AS (SELECT id, explode(tags) AS tag FROM orders) SELECT * FROM lines WHERE tag <> 'y'",
    "kept by a lateral view": "SELECT id, place, tag FROM orders LATERAL VIEW OUTER posexplode(tags) t AS place, tag",
    "joined": "SELECT /*+ BROADCAST(u) */ o.id, u.name FROM orders o JOIN users u ON o.user = u.user",
    "joined again": "SELECT /*+ BROADCAST(u) */ o.amount, u.name FROM orders o JOIN users u ON o.user = u.user",
    "joined, kept": "SELECT /*+ BROADCAST(c) */ id, c.count FROM orders LEFT JOIN counted c ON amount = c.k",
    "in a table": "SELECT id FROM orders WHERE user IN (SELECT /*+ BROADCAST(users) */ user FROM users)",
    "not in a table": "SELECT id FROM orders WHERE user NOT IN (SELECT user FROM users)",
    "beside a table's number": "SELECT id, amount - (SELECT max(count) FROM counted) AS less FROM orders",
    "a function in Python": "SELECT shout(user) AS loud, id FROM orders",
    "nested": "SELECT id, named_struct('a', amount, 'b', tags) AS s, map(user, amount) AS m FROM orders",
}


@PLANS
def test_what_spark_makes_of_rows(spark: Any, internals: str) -> None:
    """All queries in one job: each of them has a level, and rows of the others go past it."""
    with tables(spark):
        env = environment(**{"holdfast.spark.internals": internals})
        env.create_temporary_view("orders", order_stream(env, epochs=2))
        told = []
        for place, query in enumerate(QUERIES.values()):
            stream = env.sql(query)
            told.append(stream.map(lambda row, place=place: (place, plain(row)), output_type=None))
        with told[0].union(*told[1:]).execute_and_collect() as rows:
            found = sorted(rows, key=repr)
        alone = [by_spark_alone(spark, query, epochs=2) for query in QUERIES.values()]
        expected = [(place, plain(row)) for place, rows_of_query in enumerate(alone) for row in rows_of_query]
    assert found == sorted(expected, key=repr)
    assert len({place for place, _ in found}) == len(QUERIES) - 1


def plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(map(plain, value))
    return tuple(sorted(value.items())) if isinstance(value, dict) else value


@PLANS
def test_a_query_on_rows_of_a_query_and_of_a_data_frame(spark: Any, internals: str) -> None:
    env = environment(**{"holdfast.spark.internals": internals})
    env.create_temporary_view("numbers", env.from_data_frame(spark.range(0, 1000, 1, 3)))
    env.create_temporary_view("even", env.sql("SELECT id, id * 2 AS twice FROM numbers WHERE id % 2 = 0"))
    counted = env.sql("SELECT id % 5 AS k, twice FROM even WHERE twice > 100").key_by(lambda row: row.k)
    totals = counted.reduce(lambda one, other: Row(k=one.k, twice=one.twice + other.twice))
    with totals.execute_and_collect() as rows:
        last: dict[int, int] = {}
        for row in rows:
            last[row.k] = max(last.get(row.k, 0), row.twice)
    assert last == {k: sum(n * 2 for n in range(52, 1000, 2) if n % 5 == k) for k in range(5)}


class SecondOfId(TimestampAssigner):
    def extract_timestamp(self, value: Row, record_timestamp: int) -> int:
        return int(value.id) * 1_000


def test_event_time_passes_through_a_query(spark: Any) -> None:
    """The column is the time of the rows that come of it, and windows close by the watermark in front of the query."""
    env = environment()
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondOfId())
    timed = order_stream(env).assign_timestamps_and_watermarks(strategy)
    env.create_temporary_view("orders", timed, event_time_column="at")
    lines = env.sql("SELECT user, explode(tags) AS tag, at FROM orders WHERE user <> 'c'")
    windows = lines.key_by(lambda row: row.user, Types.STRING()).window(TumblingEventTimeWindows.of(Time.seconds(10)))
    pair = Types.ROW_NAMED(["user", "n", "at"], [Types.STRING(), Types.LONG(), Types.LONG()])
    counts = windows.process(CountRows(), pair)
    with counts.execute_and_collect() as rows:
        found = Counter({(row.user, row.at): row.n for row in rows})
    expected = Counter(
        (order.user, order.id // 10 * 10_000)
        for epoch in orders()
        for order in epoch
        for _ in order.tags
        if order.user != "c"
    )
    assert found == expected


class CountRows(ProcessWindowFunction):
    def process(self, key: str, context: Any, elements: Any) -> Iterator[Row]:
        yield Row.factory(["user", "n", "at"])([key, len(list(elements)), context.window().start])


SETTINGS = {
    "execution.checkpointing.interval": "10 ms",
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "9",
    "restart-strategy.fixed-delay.delay": "10 ms",
}


NAMED = "SELECT /*+ BROADCAST(u) */ o.id, u.name, o.amount FROM orders o JOIN users u ON o.user = u.user"


def named_by_sql(env: StreamExecutionEnvironment, spark: Any) -> DataStream:
    env.create_temporary_view("orders", order_stream(env))
    return env.sql(NAMED)


def named_by_data_frame(env: StreamExecutionEnvironment, spark: Any) -> DataStream:
    users = functions.broadcast(spark.table("users"))
    return env.from_data_frame(order_stream(env).to_data_frame().join(users, "user").select("id", "name", "amount"))


@pytest.mark.parametrize("named", [named_by_sql, named_by_data_frame])
@PLANS
def test_workers_are_killed_in_front_of_a_query_and_behind_it(
    spark: Any, tmp_path: Path, internals: str, named: Callable[[StreamExecutionEnvironment, Any], DataStream]
) -> None:
    """Whoever dies, each row goes through the query once, as far as anybody can see: running counts have no gap."""
    faults = FaultPlan(tmp_path / "faults")
    # Of the sources, of the function in front of the query, of the query's level before and behind its commit, and of
    # the counts behind it.
    faults.add("task.after-commit", "kill", epoch=2, level=0)
    faults.add("query.rows-given", "kill", epoch=3)
    faults.add("task.before-commit", "kill", epoch=4, level=2)
    faults.add("task.after-commit", "kill", epoch=5, level=2)
    faults.add("task.after-commit", "kill", epoch=3, level=3)
    with tables(spark), faults.among(spark):
        directory = str(tmp_path / "checkpoints")
        env = environment(
            **SETTINGS, **{"holdfast.spark.internals": internals, "execution.checkpointing.dir": directory}
        )
        joined = named(env, spark)
        told = Types.ROW_NAMED(["name", "n", "total"], [Types.STRING(), Types.LONG(), Types.LONG()])
        totals = joined.key_by(lambda row: row.name, Types.STRING()).map_with_state(
            running_total, state_type=Types.TUPLE([Types.LONG(), Types.LONG()]), output_type=told
        )
        totals.sink_to(FileSink.json(str(tmp_path / "out")))
        history = env.execute("killed").get_history()
        rows = by_spark_alone(spark, NAMED)
    assert not faults.not_reached()
    assert history.restarts >= len(faults.all_reached()) - 1
    found = published(tmp_path / "out")
    by_name: dict[str, list[int]] = {}
    for _, name, amount in rows:
        by_name.setdefault(name, []).append(amount)
    assert Counter(name for name, *_ in found) == {name: len(amounts) for name, amounts in by_name.items()}
    for name, amounts in by_name.items():
        assert [n for each, n, _ in found if each == name] == list(range(1, len(amounts) + 1))
        assert max(total for each, _, total in found if each == name) == sum(amounts)


def running_total(row: Row, seen: tuple[int, int] | None) -> tuple[Row, tuple[int, int]]:
    count, total = seen or (0, 0)
    count, total = count + 1, total + row.amount
    return Row.factory(["name", "n", "total"])([row.name, count, total]), (count, total)


def test_a_failure_in_front_of_a_query_is_told_as_what_it_is(spark: Any) -> None:
    def fail(row: Row) -> Row:
        raise ValueError(f"order {row.id} is none")

    env = environment()
    env.create_temporary_view("orders", order_stream(env).map(fail, ORDER))
    env.sql("SELECT id FROM orders").print()
    with pytest.raises(JobExecutionError) as raised:
        env.execute()
    failure = raised.value.__cause__
    assert type(failure) is FunctionError and "ValueError: order" in str(failure)
    assert "{" not in str(raised.value) and raised.value.trace.rstrip().endswith("is none")


@pytest.mark.spark(min="4.0", reason="before, Spark does not say in its texts that it was a value")
@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("SELECT if(id < 20, id, raise_error(concat('order ', id))) AS checked FROM orders", "order 2"),
        ("SELECT try_divide(1, id) AS share, CAST(concat('x', id) AS INT) AS number FROM orders", "CAST_INVALID_INPUT"),
    ],
)
def test_a_row_that_the_query_cannot_take_ends_the_job(spark: Any, query: str, told: str) -> None:
    """As one that a function cannot take: another attempt has the same row."""
    env = environment(**{"execution.checkpointing.interval": "365 d"})
    env.get_configuration().remove_config("restart-strategy.type")
    env.create_temporary_view("orders", order_stream(env))
    env.sql(query).print()
    with pytest.raises(JobExecutionError, match=rf"(?s)in the same way 3 times.*{told}"):
        env.execute()


REFUSED = {
    "SELECT user, count(*) FROM orders GROUP BY user": "an aggregation",
    "SELECT sum(amount) FROM orders": "an aggregation",
    "SELECT DISTINCT user FROM orders": "an aggregation",
    "SELECT user FROM orders INTERSECT SELECT user FROM users": "an aggregation",
    "SELECT * FROM orders ORDER BY user": "ORDER BY",
    "SELECT * FROM orders LIMIT 3": "LIMIT",
    "SELECT * FROM orders LIMIT 3 OFFSET 2": "LIMIT",
    "SELECT *, row_number() OVER (PARTITION BY user ORDER BY amount) FROM orders": "a window function",
    "SELECT user FROM orders UNION ALL SELECT name FROM users": "UNION",
    "SELECT user FROM orders UNION ALL SELECT user FROM orders": "reads the view 'orders' 2 times",
    "SELECT a.user FROM orders a JOIN orders b ON a.id = b.id": "reads the view 'orders' 2 times",
    "SELECT a.user FROM orders a JOIN others b ON a.id = b.id": "two streams, 'orders' and 'others'",
    "SELECT * FROM orders WHERE false": "No row of a stream",
    "SELECT * FROM users": "No row of a stream",
    "SELECT * FROM orders TABLESAMPLE (10 PERCENT)": "TABLESAMPLE",
    "SELECT /*+ REPARTITION(3) */ * FROM orders": "Exchange",
    "SELECT o.id FROM orders o JOIN users u ON o.user = u.user": r"hint BROADCAST\(its name\)",
    "SELECT o.id FROM orders o JOIN users u ON o.amount < length(u.name)": r"hint BROADCAST\(its name\)",
    "SELECT /*+ BROADCAST(o) */ o.id FROM orders o JOIN users u ON o.user = u.user": "the stream is sent to all tasks",
    "SELECT /*+ BROADCAST(o) */ u.name FROM users u LEFT JOIN orders o ON o.user = u.user": "sent to all tasks",
    "SELECT /*+ BROADCAST(u) */ u.name FROM users u LEFT JOIN orders o ON o.amount < length(u.name)": "keeps the rows",
    "SELECT /*+ BROADCAST(u) */ u.name FROM orders o FULL JOIN users u ON o.amount < length(u.name)": "keeps the rows",
    "SELECT * FROM users WHERE name > (SELECT user FROM orders)": "in a subquery",
    "SELECT * FROM users WHERE name > (SELECT max(user) FROM orders)": "an aggregation",
    "SELECT user, now() FROM orders": "has now, which Spark computes",
    "SELECT user, current_date FROM orders": "has current_date, which Spark computes",
    "SELECT user, rand() AS r FROM orders": "has rand, which Spark computes",
    "SELECT user, TIMESTAMP 'now' AS at FROM orders": "has TIMESTAMP 'now', which Spark computes",
    "SELECT user, date ' Today UTC' AS day FROM orders": "has date 'Today', which Spark computes",
    "SELECT user, CAST('yesterday' AS DATE) AS day FROM orders": "has CAST\\('yesterday', which Spark computes",
    "SELECT user, 'tomorrow'::date AS day FROM orders": "has 'tomorrow'::, which Spark computes",
    "SELECT user, to_date(\"today\") AS day FROM orders": "has to_date\\('today', which Spark computes",
    "SELECT user, user FROM orders": "a field name twice",
    "SELECT user, INTERVAL 1 DAY AS d FROM orders": "a stream cannot have",
    "SELECT * FROM nosuch": "nosuch",
    "SELEKT * FROM orders": "cannot read the query",
    "DROP VIEW users": "takes one query, and no statement",
    "INSERT INTO users SELECT user, user FROM orders": "takes one query, and no statement",
}


def test_queries_that_are_refused(spark: Any) -> None:
    with tables(spark):
        env = environment()
        env.create_temporary_view("orders", order_stream(env))
        env.create_temporary_view("others", order_stream(env))
        for query, message in REFUSED.items():
            with pytest.raises(ProgramError, match=message):
                env.sql(query)
        # Neither what was refused nor what was analysed has left anything behind.
        assert not spark.catalog.tableExists("orders")
        assert spark.catalog.tableExists("users")
        assert env.sql("SELECT 'now() and rand()' AS text, user AS `current_date` FROM orders").get_type()
        assert env.sql("SELECT 'today' AS day, TIMESTAMP '2024-01-01' AS at FROM orders WHERE user <> 'now'").get_type()
        assert env.sql("SELECT CAST('7' AS LONG) AS n, \"date 'today'\" AS text FROM orders").get_type()


def test_a_temporary_view_of_the_session_is_not_hidden(spark: Any) -> None:
    env = environment()
    env.create_temporary_view("users", order_stream(env))
    with tables(spark), pytest.raises(ProgramError, match="has a temporary view 'users'"):
        env.sql("SELECT id FROM users")


def test_an_event_time_column_must_be_a_time(spark: Any) -> None:
    env = environment()
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondOfId())
    timed = order_stream(env).assign_timestamps_and_watermarks(strategy)
    env.create_temporary_view("orders", timed, event_time_column="at")
    with pytest.raises(ProgramError, match="gives the column 'at' as string"):
        env.sql("SELECT id, CAST(at AS STRING) AS at FROM orders")


def test_a_table_that_has_changed_since_the_program_was_written(spark: Any) -> None:
    with tables(spark):
        env = environment()
        env.create_temporary_view("orders", order_stream(env))
        env.sql("SELECT /*+ BROADCAST(u) */ o.id, u.name FROM orders o JOIN users u ON o.user = u.user").print()
        spark.sql("SELECT 'a' AS user, 1 AS name").createOrReplaceTempView("users")
        with pytest.raises(JobExecutionError) as raised:
            env.execute()
    assert "has changed" in f"{raised.value} {raised.value.__cause__}"
