"""SQL in the middle of a program: PyFlink's tables, and here Spark SQL on a view of a stream."""

from pyflink.common import Row, Types

from tests.parity.case import program

KIND = Types.ROW_NAMED(["name", "amount"], [Types.STRING(), Types.LONG()])
ROWS = [Row("tea", 3), Row("milk", 12), Row("salt", 7), Row("tea", 20)]


def queried(env, rows, query):
    """The rows of a query on ``orders``."""
    if hasattr(env, "sql"):
        env.create_temporary_view("orders", rows)
        return env.sql(query)
    from pyflink.table import StreamTableEnvironment

    tables = StreamTableEnvironment.create(env)
    tables.create_temporary_view("orders", tables.from_data_stream(rows))
    return tables.to_data_stream(tables.sql_query(query))


def orders(env):
    return env.from_collection(ROWS, KIND)


@program(9)
def filtered_by_sql(env, out):
    found = queried(env, orders(env), "SELECT UPPER(name) AS name, amount * 2 AS twice FROM orders WHERE amount > 5")
    return found.map(lambda row: f"{row[0]} {row[1]}", Types.STRING())


@program(9)
def keyed_behind_sql(env, out):
    """Rows go from functions into a query, and from there into keyed state."""
    given = orders(env).map(lambda row: Row(row.name, row.amount + 1), KIND)
    found = queried(env, given, "SELECT name, amount FROM orders WHERE name <> 'salt'")
    pairs = found.map(lambda row: (row[0], row[1]), Types.TUPLE([Types.STRING(), Types.LONG()]))
    return pairs.key_by(lambda pair: pair[0], key_type=Types.STRING()).sum(1)
