"""SQLite, through Python's own module."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from holdfast.connectors.sql.address import DatabaseAddress
from holdfast.connectors.sql.columns import rows_of
from holdfast.connectors.sql.database import Database, Session
from holdfast.connectors.sql.targets import Target

#: How long a transaction waits for those of others.
_PATIENCE_SECONDS = 30.0
_TRANSIENT = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
}


class SqliteDatabase(Database):
    errors = (sqlite3.Error,)

    def __init__(self, address: DatabaseAddress) -> None:
        self._path = address.parameters["path"]

    def connect(self) -> SqliteSession:
        # Not created where it does not exist: a mistyped path would become an empty database.
        name = f"file:{quote(self._path)}?mode=rw"
        connection = sqlite3.connect(name, _PATIENCE_SECONDS, isolation_level=None, check_same_thread=False, uri=True)
        try:
            return SqliteSession(connection)
        except BaseException:
            connection.close()
            raise

    def is_transient(self, error: Exception) -> bool:
        # The lowest byte is the class of an error.
        return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF in _TRANSIENT

    def message_of(self, error: Exception) -> str:
        return str(error)


class SqliteSession(Session):
    """The whole database is locked for other writers from the beginning of a transaction on."""

    mark = "?"
    bytes_type = "BLOB"
    time_type = "TEXT"
    row_lock = ""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        # A commit that was acknowledged must survive a loss of power: the files of its rows are deleted after it.
        self.execute("PRAGMA synchronous = FULL")
        self.begin()

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._connection.execute(statement, values).fetchall()

    def has_table(self, table: str) -> bool:
        return bool(self.execute("SELECT 1 FROM sqlite_master WHERE name = ?1", (table.rpartition(".")[2],)))

    def check(self, target: Target, schema: pa.Schema) -> None:
        if target.explainable:
            self.execute(f"EXPLAIN {self._statement(target, schema)}", [None] * len(schema))

    def write(self, target: Target, batches: Iterable[pa.RecordBatch]) -> None:
        for batch in batches:
            self._connection.executemany(self._statement(target, batch.schema), rows_of(batch))

    def begin(self) -> None:
        self.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        self.execute("COMMIT")

    def rollback(self) -> None:
        self._connection.rollback()

    def close(self) -> None:
        self._connection.close()

    def _statement(self, target: Target, schema: pa.Schema) -> str:
        return target.row_statement(schema.names, [f"?{number}" for number in range(1, len(schema) + 1)])
