"""PostgreSQL, through psycopg."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

import pyarrow as pa
from pyarrow import types as kinds

from holdfast.connectors.sql.address import DatabaseAddress
from holdfast.connectors.sql.columns import csv_of, numbered, rows_of
from holdfast.connectors.sql.database import Database, Session
from holdfast.connectors.sql.targets import TableTarget, Target, quoted, quoted_name
from holdfast.errors import MissingExtraError

#: Unless the address says otherwise.
_CONNECTION = {
    "fallback_application_name": "holdfast",
    "connect_timeout": 10,
    # A server whose host is gone is noticed within a minute.
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
_STAGE = "holdfast_rows"
_ORDER = "holdfast_order"
#: For the transaction, whatever server, user and database have set.
_SETTINGS = {
    # A commit that was acknowledged must survive a crash of the server: the files of its rows are deleted after it.
    "synchronous_commit": "on",
    # A driver that hangs, or whose host is gone, must not keep its successor waiting for ever...
    "idle_in_transaction_session_timeout": "60s",
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
    # ... which says so, meanwhile.
    "lock_timeout": "120s",
    "timezone": "UTC",
}
_TYPES = (
    (kinds.is_boolean, "boolean"),
    (kinds.is_int64, "bigint"),
    (kinds.is_int32, "integer"),
    (kinds.is_integer, "smallint"),
    (kinds.is_float64, "double precision"),
    (kinds.is_floating, "real"),
    (kinds.is_decimal, "numeric"),
    (kinds.is_date, "date"),
    (kinds.is_time, "time"),
    (kinds.is_binary, "bytea"),
)


class PostgresDatabase(Database):
    def __init__(self, address: DatabaseAddress) -> None:
        try:
            import psycopg
        except ImportError as cause:
            raise MissingExtraError("psycopg", "postgres", "PostgreSQL") from cause
        self._psycopg = psycopg
        self._address = address
        self.errors = (psycopg.Error,)

    def connect(self) -> PostgresSession:
        parameters = {**_CONNECTION, **self._address.parameters}
        connection = self._psycopg.connect(**parameters, cursor_factory=self._psycopg.RawCursor)
        try:
            return PostgresSession(connection)
        except BaseException:
            connection.close()
            raise

    def is_transient(self, error: Exception) -> bool:
        return isinstance(error, (self._psycopg.OperationalError, self._psycopg.InterfaceError))

    def message_of(self, error: Exception) -> str:
        told = getattr(error, "diag", None)
        if told is None or told.message_primary is None:
            return " ".join(str(error).split())
        return "; ".join(part for part in (told.message_primary, told.message_detail, told.context) if part)


class PostgresSession(Session):
    mark = "$"
    bytes_type = "BYTEA"
    time_type = "TIMESTAMP WITH TIME ZONE"
    row_lock = " FOR UPDATE"

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._stages = 0
        self.begin()

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        cursor = self._connection.execute(statement, values)
        return [] if cursor.description is None else cursor.fetchall()

    def has_table(self, table: str) -> bool:
        [(found,)] = self.execute("SELECT to_regclass($1) IS NOT NULL", (quoted(table),))
        return bool(found)

    def check(self, target: Target, schema: pa.Schema) -> None:
        if target.explainable:
            self.execute(f"EXPLAIN {target.row_statement(schema.names, list(map(_null_of, schema.types)))}")

    def write(self, target: Target, batches: Iterable[pa.RecordBatch]) -> None:
        waiting = iter(batches)
        first = next(waiting, None)
        if first is None:
            return
        every, names = chain([first], waiting), first.schema.names
        if not isinstance(target, TableTarget):
            marks = [f"${number}" for number in range(1, len(names) + 1)]
            statement = target.row_statement(names, marks)
            self._connection.cursor().executemany(statement, chain.from_iterable(map(rows_of, every)))
        elif target.key:
            self._upsert(target, names, every)
        else:
            self._copy(quoted(target.table), names, every)

    def begin(self) -> None:
        settings = ", ".join(f"set_config('{name}', '{value}', true)" for name, value in _SETTINGS.items())
        self.execute(f"SELECT {settings}")

    def commit(self) -> None:
        self._connection.commit()

    def rollback(self) -> None:
        self._connection.rollback()

    def close(self) -> None:
        with suppress(Exception):  # whatever was to be kept is committed
            self._connection.close()

    def _upsert(self, target: TableTarget, names: Sequence[str], batches: Iterator[pa.RecordBatch]) -> None:
        """Through a temporary table, which can be filled with COPY. Of rows with one key the last one counts."""
        self._stages += 1
        stage = f"pg_temp.{_STAGE}_{self._stages}"
        columns, key = ", ".join(map(quoted_name, names)), ", ".join(map(quoted_name, target.key))
        self.execute(
            f"CREATE TEMPORARY TABLE {_STAGE}_{self._stages} ON COMMIT DROP AS "
            f"SELECT {columns}, 0::bigint AS {_ORDER} FROM {quoted(target.table)} WITH NO DATA"
        )
        self._copy(stage, [*names, _ORDER], numbered(batches, _ORDER))
        newest = f"SELECT DISTINCT ON ({key}) {columns} FROM {stage} ORDER BY {key}, {_ORDER} DESC"
        self.execute(target.insert(names, newest))

    def _copy(self, table: str, names: Sequence[str], batches: Iterator[pa.RecordBatch]) -> None:
        columns = ", ".join(map(quoted_name, names))
        with self._connection.cursor() as cursor:
            statement = f"COPY {table} ({columns}) FROM STDIN (FORMAT csv, ENCODING 'UTF8')"
            with cursor.copy(statement) as copy:
                for batch in batches:
                    copy.write(csv_of(batch))


def _null_of(kind: pa.DataType) -> str:
    """NULL with the type of a column, so that the database finds what cannot be assigned. Text goes anywhere."""
    if kinds.is_timestamp(kind):
        return f"NULL::timestamp {'without' if kind.tz is None else 'with'} time zone"
    return next((f"NULL::{name}" for matches, name in _TYPES if matches(kind)), "NULL")
