"""The SQL sink on SQLite, addresses and statements."""

from __future__ import annotations

import pickle
import sqlite3
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from holdfast.common import Types
from holdfast.connectors.sql.address import DatabaseAddress
from holdfast.connectors.sql.sink import SqlSink
from holdfast.connectors.sql.targets import StatementTarget
from holdfast.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcExecutionOptions, JdbcSink
from holdfast.errors import MissingExtraError, ProgramError, TransactionError
from holdfast.testing.contracts.sinks import JOB, pre_commit
from tests.connectors.sql_contract import PAIRS, DatabaseUnderTest, SqlSinkContract, bound

SECRET = "s3cr3t-of-the-test"


class SqliteFile(DatabaseUnderTest):
    def __init__(self, path: Path) -> None:
        self.path = path
        self.url = f"sqlite:///{path}"
        sqlite3.connect(path).close()

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.path)) as connection, connection:
            return connection.execute(statement).fetchall()

    def stop(self) -> None:
        self.path.rename(self.path.with_suffix(".away"))

    def start(self) -> None:
        self.path.with_suffix(".away").rename(self.path)


class TestSqlite(SqlSinkContract):
    all_types = "a INTEGER, b TEXT, c BOOLEAN, d REAL, e TEXT, f TEXT, g TEXT, h BLOB, i TEXT"
    stored_row = (
        *(1, 'quo"te\n\\.', 1, 0.1, "12.50"),
        *("2020-01-02", "2020-01-02 03:04:05.000678", b"\x00\xff", "[1,2]"),
    )

    @pytest.fixture
    def database(self, tmp_path: Path) -> SqliteFile:
        return SqliteFile(tmp_path / "the.db")


@pytest.fixture
def database(tmp_path: Path) -> SqliteFile:
    return SqliteFile(tmp_path / "the.db")


def test_a_database_that_another_program_writes_to_is_waited_for(database: SqliteFile, tmp_path: Path) -> None:
    table = database.table("k BIGINT, v TEXT")
    sink = bound(SqlSink.insert(database.url, table), tmp_path)
    handle = pre_commit(sink, [(1, "a")])
    other = sqlite3.connect(database.path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    threading.Timer(0.2, other.rollback).start()
    began = time.monotonic()
    sink.commit([handle])
    assert time.monotonic() - began > 0.15
    other.close()
    assert database.rows(table) == [(1, "a")]


def test_a_mistyped_path_does_not_become_a_database(tmp_path: Path) -> None:
    sink = bound(SqlSink.insert(f"sqlite:///{tmp_path}/typo.db", "t").set_max_retries(0), tmp_path)
    with pytest.raises(TransactionError, match=r"sqlite:.*typo\.db: unable to open"):
        sink.open_transactions(JOB)
    assert not (tmp_path / "typo.db").exists()


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (f"postgresql://ann:{SECRET}@db.example:5433/sales", "postgresql://ann@db.example:5433/sales"),
        (f"jdbc:postgresql://db.example/sales?user=ann&password={SECRET}", "postgresql://ann@db.example/sales"),
        (f"host=db.example dbname=sales user=ann password={SECRET}", "postgresql://ann@db.example/sales"),
        ("jdbc:postgresql:sales", "postgresql:///sales"),
        ("sqlite:////data/a.db", "sqlite:/data/a.db"),
        ("jdbc:sqlite:/data/a.db", "sqlite:/data/a.db"),
        ("sqlite:///a.db", f"sqlite:{Path.cwd()}/a.db"),
    ],
)
def test_addresses_show_no_password_and_know_it(given: str, shown: str) -> None:
    address = DatabaseAddress.parse(given)
    assert repr(address) == shown
    pickled = pickle.dumps(address)
    assert SECRET.encode() not in pickled
    assert pickle.loads(pickled).parameters.get("password") == (SECRET if SECRET in given else None)


@pytest.mark.parametrize(
    "given",
    [
        f"mysql://ann:{SECRET}@db/sales",
        SECRET,
        f"postgresql://ann:{SECRET}%zz@db/sales",
        f"postgresql://db/sales?secret={SECRET}",
        f"host=db {SECRET}",
        "sqlite:",
        "sqlite:///:memory:",
    ],
)
def test_addresses_that_cannot_be_read_are_refused_without_showing_them(given: str) -> None:
    with pytest.raises(ProgramError, match=r"postgresql://user@host|sqlite:///the\.db") as caught:
        SqlSink.insert(given, "t")
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_sink_that_travels_has_no_password() -> None:
    sink = SqlSink.insert("postgresql://db/sales", "t", user="ann", password=SECRET)
    assert SECRET.encode() not in pickle.dumps(sink)
    options = JdbcConnectionOptions("postgresql://db/sales", "ann", SECRET)
    for shown in (repr(sink), repr(options), repr(vars(sink))):
        assert SECRET not in shown
    assert repr(sink) == "SqlSink(table t, postgresql://ann@db/sales)"


def test_without_the_client_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtraError, match=r"holdfast\[postgres\]"):
        SqlSink.insert("postgresql://db/sales", "t")


@pytest.mark.parametrize(
    ("statement", "translated"),
    [
        ("INSERT INTO t VALUES (?, ?)", "INSERT INTO t VALUES ($1, $2)"),
        ("UPDATE t SET a = ? WHERE b = ?", "UPDATE t SET a = $1 WHERE b = $2"),
        ("INSERT INTO t VALUES (?, '?''?', \"?\", ?)", "INSERT INTO t VALUES ($1, '?''?', \"?\", $2)"),
        ("SELECT ? -- why?\n, /* ? */ ?", "SELECT $1 -- why?\n, /* ? */ $2"),
        ("SELECT $tag$ ? $$ $tag$, ?, $$ ? $$, ?", "SELECT $tag$ ? $$ $tag$, $1, $$ ? $$, $2"),
        ("UPDATE t SET a = ? WHERE b ?? ?", "UPDATE t SET a = $1 WHERE b ? $2"),
    ],
)
def test_placeholders_are_those_outside_of_text_and_comments(statement: str, translated: str) -> None:
    target = StatementTarget(statement)
    target.check_columns(["a", "b"])
    assert target.row_statement(["a", "b"], ["$1", "$2"]) == translated


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda url: SqlSink.upsert(url, "t", []), "needs a key"),
        (lambda url: SqlSink.upsert(url, "t", ["k", "x"]).bind_type(PAIRS), "the key has x"),
        (lambda url: SqlSink.insert(url, "t").bind_type(None), "declared type"),
        (lambda url: SqlSink.insert(url, "t").set_max_retries(-1), "0 times or more"),
        (lambda url: SqlSink.statement(url, "INSERT INTO t VALUES (?)").bind_type(PAIRS), "1 placeholders.*2 columns"),
        (lambda url: SqlSink.insert(url, "t").bind_checkpoint_directory(None), "set_staging_directory"),
        (lambda url: JdbcConnectionOptions.JdbcConnectionOptionsBuilder().build(), "with_url"),
    ],
)
def test_what_cannot_be(database: SqliteFile, make: Any, message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        make(database.url)


def test_a_relative_staging_directory_is_one_of_the_program(
    database: SqliteFile, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    sink = SqlSink.insert(database.url, database.table("k BIGINT, v TEXT")).set_staging_directory("here")
    bound(sink, tmp_path)
    (tmp_path / "worker").mkdir()
    monkeypatch.chdir(tmp_path / "worker")
    pre_commit(pickle.loads(pickle.dumps(sink)), [(1, "a")])
    assert len(list((tmp_path / "here").rglob("*.records"))) == 1


def test_names_are_taken_as_they_are_written(database: SqliteFile, tmp_path: Path) -> None:
    database.query('CREATE TABLE "Order" ("Group" BIGINT PRIMARY KEY, "a ""b""" TEXT)')
    sink = SqlSink.upsert(database.url, "main.Order", "Group")
    bound(sink, tmp_path, Types.ROW_NAMED(["Group", 'a "b"'], [Types.LONG(), Types.STRING()])).open_transactions(JOB)
    sink.commit([pre_commit(sink, [(1, "x"), (1, "y")])])
    assert database.rows('"Order"') == [(1, "y")]


def test_pyflinks_names(database: SqliteFile, tmp_path: Path) -> None:
    table = database.table("k BIGINT PRIMARY KEY, v TEXT")
    options = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(f"jdbc:sqlite:{database.path}")
    options.with_driver_name("org.sqlite.JDBC").with_user_name("ann").with_password(SECRET)
    execution = JdbcExecutionOptions.builder().with_batch_interval_ms(1000).with_batch_size(200).with_max_retries(5)
    statement = f"INSERT INTO {table} (k, v) VALUES (?, ?) ON CONFLICT (k) DO UPDATE SET v = EXCLUDED.v || '?'"
    typed = Types.ROW([Types.LONG(), Types.STRING()])
    sink = JdbcSink.sink(statement, typed, options.build(), execution.build())
    assert sink._max_retries == 5
    # The given type counts, whatever that of the stream is.
    bound(sink, tmp_path, None).commit([pre_commit(sink, [(1, "a"), (2, "b"), (1, "c")])])
    assert database.rows(table) == [(1, "c?"), (2, "b")]
    assert JdbcSink.sink(statement, typed, options.build())._max_retries > 5
    assert JdbcExecutionOptions.defaults() == JdbcExecutionOptions()
