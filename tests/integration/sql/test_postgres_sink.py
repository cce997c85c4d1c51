"""The SQL sink on a real PostgreSQL server: the contract, and what only it can show."""

from __future__ import annotations

import datetime
import logging
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from holdfast.common import WatermarkStrategy
from holdfast.connectors.sql.sink import SqlSink
from holdfast.errors import ProgramError, TransactionError
from holdfast.runtime.epoch import EpochSpec
from holdfast.testing.chaos.processes import wait_until
from holdfast.testing.contracts.sinks import JOB, pre_commit, transaction_name
from holdfast.testing.in_process import InProcessEngine
from tests.connectors.sql_contract import DatabaseUnderTest, SqlSinkContract, bound
from tests.integration.programs import Scripted, environment
from tests.job.counting import settings
from tests.kit.faults import FaultPlan
from tests.kit.postgres import GUARDED, SECRET, PostgresServer

_COMMIT = """
import pickle, sys
sink, handles = pickle.load(open(sys.argv[1], "rb"))
sink.commit(handles)
"""


class PostgresTables(DatabaseUnderTest):
    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self.url = server.url()

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        return self._server.query(statement)

    def stop(self) -> None:
        self._server.kill()

    def start(self) -> None:
        self._server.start()


class TestPostgres(SqlSinkContract):
    all_types = (
        "a INTEGER, b TEXT, c BOOLEAN, d DOUBLE PRECISION, e NUMERIC(10, 2), f DATE, g TIMESTAMP, h BYTEA, i JSONB"
    )
    stored_row = (
        *(1, 'quo"te\n\\.', True, 0.1, Decimal("12.50"), datetime.date(2020, 1, 2)),
        *(datetime.datetime(2020, 1, 2, 3, 4, 5, 678), b"\x00\xff", [1, 2]),
    )

    @pytest.fixture
    def database(self, postgres: PostgresServer) -> PostgresTables:
        return PostgresTables(postgres)


@pytest.fixture
def tables(postgres: PostgresServer) -> PostgresTables:
    return PostgresTables(postgres)


def commit_elsewhere(sink: SqlSink, handles: list[bytes], directory: Path, plan: FaultPlan) -> subprocess.Popen[bytes]:
    """A driver that does not know that it was given up."""
    argument = directory / "given-up.pickle"
    argument.write_bytes(pickle.dumps((sink, handles)))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **plan.environment}
    return subprocess.Popen([sys.executable, "-c", _COMMIT, str(argument)], env=environment)


@pytest.mark.parametrize("fate", ["goes on", "dies"])
def test_a_successor_waits_for_a_driver_that_hangs_within_its_commit(
    tables: PostgresTables, tmp_path: Path, fate: str
) -> None:
    table = tables.table("k BIGINT, v TEXT")
    sink = bound(SqlSink.insert(tables.url, table), tmp_path)
    sink.commit([pre_commit(sink, [(0, "before")], epoch=0)])
    handles = [pre_commit(sink, [(1, "a"), (2, "b")])]
    plan = FaultPlan(tmp_path / "plan")
    trigger = plan.add("sql-sink.written", "hold:60000")
    with commit_elsewhere(sink, handles, tmp_path, plan) as given_up:
        plan.wait(trigger)
        successor = threading.Thread(target=lambda: sink.recover_and_commit(handles))
        successor.start()
        waiting = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'holdfast' AND wait_event_type = 'Lock'"
        try:
            wait_until(lambda: tables.query(waiting) or None, 20, "a successor that waits")
        except TimeoutError:
            given_up.kill()
            raise
        if fate == "goes on":
            plan.release(trigger)
        else:
            given_up.kill()
        successor.join(30)
        given_up.wait(30)
    assert tables.rows(table) == [(0, "before"), (1, "a"), (2, "b")]
    assert list(sink.open_transactions(JOB)) == []


def test_what_was_aborted_cannot_be_committed_any_more(tables: PostgresTables, tmp_path: Path) -> None:
    table = tables.table("k BIGINT, v TEXT")
    sink = bound(SqlSink.insert(tables.url, table), tmp_path)
    sink.commit([pre_commit(sink, [(0, "before")], epoch=0)])
    handle = pre_commit(sink, [(1, "a")])
    plan = FaultPlan(tmp_path / "plan")
    trigger = plan.add("sql-sink.written", "stop")
    with commit_elsewhere(sink, [handle], tmp_path, plan) as given_up:
        plan.wait(trigger)
        aborting = threading.Thread(target=lambda: sink.abort(transaction_name()))
        aborting.start()
        aborting.join(0.5)
        waits = aborting.is_alive()
        given_up.send_signal(signal.SIGKILL)
        aborting.join(30)
    assert waits, "for the decision of whoever may be committing it"
    assert tables.rows(table) == [(0, "before")]
    with pytest.raises(TransactionError, match="lost"):
        sink.commit([handle])


def test_a_server_that_crashes_during_commits(tables: PostgresTables, postgres: PostgresServer, tmp_path: Path) -> None:
    table = tables.table("k BIGINT PRIMARY KEY, v BIGINT")
    sink = bound(SqlSink.insert(tables.url, table), tmp_path, "k BIGINT, v BIGINT")
    rows = [(number, number * number) for number in range(100_000)]
    handles = [pre_commit(sink, rows[first : first + 5_000], epoch=first) for first in range(0, 100_000, 5_000)]
    committed: list[bytes] = []

    def commit() -> None:
        for handle in handles:
            sink.commit([handle])
            committed.append(handle)

    moments = random.Random(3)
    with ThreadPoolExecutor(1) as pool:
        committing = pool.submit(commit)
        for target in range(2, 18, 4):
            wait_until(lambda least=target: len(committed) >= least or None, 60, f"{target} commits")
            time.sleep(moments.random() / 20)
            postgres.restart()
        committing.result(60)
    assert tables.rows(table) == rows


def test_a_wrong_password_is_told_and_no_password_is_shown(
    postgres: PostgresServer, guarded: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    sink = bound(SqlSink.insert(postgres.url(GUARDED, f"not-{SECRET}"), guarded).set_max_retries(1), tmp_path)
    with pytest.raises(TransactionError, match=r"password authentication failed.*user and password") as caught:
        sink.open_transactions(JOB)
    shown = [str(caught.value), repr(caught.value.__cause__), str(caught.value.__cause__), caplog.text]
    assert SECRET not in "".join(shown)
    assert "It is tried again" in caplog.text


def test_who_may_not_create_the_ledger_is_told_what_to_create(
    postgres: PostgresServer, guarded: str, tmp_path: Path
) -> None:
    sink = bound(SqlSink.upsert(postgres.url(GUARDED, SECRET), guarded, "k"), tmp_path)
    with pytest.raises(ProgramError, match=rf"(?s)permission denied.*CREATE TABLE \"{sink._ledger}\"") as caught:
        sink.open_transactions(JOB)
    assert SECRET not in str(caught.value)

    postgres.query(str(caught.value).partition("for all jobs: ")[2])
    postgres.query(f"GRANT ALL ON {sink._ledger} TO {GUARDED}")

    assert list(sink.open_transactions(JOB)) == []
    handles = [pre_commit(sink, [(1, "a")])]
    sink.commit(handles)
    sink.commit(handles)
    assert postgres.query(f"SELECT * FROM {guarded}") == [(1, "a")]


def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    url = f"postgresql://ann:{SECRET}@127.0.0.1:1/sales"
    sink = bound(SqlSink.insert(url, "t").set_max_retries(0), tmp_path)
    with pytest.raises(TransactionError, match=r"at postgresql://ann@127.0.0.1:1/sales: .*refused.*reaches") as caught:
        sink.open_transactions(JOB)
    assert SECRET not in str(caught.value)


def test_types_that_do_not_fit_are_noticed_before_there_are_rows(tables: PostgresTables, tmp_path: Path) -> None:
    table = tables.table("k DATE PRIMARY KEY, v TEXT")
    for sink in (
        SqlSink.upsert(tables.url, table, "k"),
        SqlSink.insert(tables.url, table),
        SqlSink.statement(tables.url, f"INSERT INTO {table} (k, v) VALUES (?, ?)"),
    ):
        bound(sink, tmp_path)
        with pytest.raises(ProgramError, match='"k" is of type date but expression is of type bigint'):
            sink.open_transactions(JOB)


def test_jobs_that_start_at_once_share_a_new_ledger(tables: PostgresTables, tmp_path: Path) -> None:
    table = tables.table("value BIGINT")
    sink = bound(SqlSink.insert(tables.url, table), tmp_path, int)
    handles = [pre_commit(sink, [number], job=f"job-{number}") for number in range(8)]
    threads = [threading.Thread(target=sink.commit, args=([handle],)) for handle in handles]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert tables.rows(table) == [(number,) for number in range(8)]
    assert tables.query(f"SELECT count(*) FROM {sink._ledger}") == [(8,)]


def test_a_job_leaves_its_password_nowhere(
    postgres: PostgresServer,
    guarded: str,
    tmp_path: Path,
    in_process: InProcessEngine,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    seen: dict[str, bytes] = {}

    def look(spec: EpochSpec) -> None:
        seen.update({path.name: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()})

    in_process.before_epoch = in_process.after_epoch = look
    postgres.query(f"GRANT CREATE ON SCHEMA public TO {GUARDED}")
    env = environment(**settings(tmp_path))
    epochs = [[(number, str(number))] for number in range(10)]
    script = env.from_source(Scripted(epochs), WatermarkStrategy.no_watermarks(), "script")
    rows = script.map(lambda row: row, "k BIGINT, v STRING")
    sink = SqlSink.upsert(postgres.url(GUARDED, SECRET), guarded, ["k"]).set_ledger_table(f"ledger_of_{guarded}")
    rows.sink_to(sink)
    env.execute("secret")
    assert postgres.query(f"SELECT count(*) FROM {guarded}") == [(10,)]
    postgres.query(f"REVOKE CREATE ON SCHEMA public FROM {GUARDED}")
    assert "_metadata" in seen and any(name.endswith(".records") for name in seen)
    assert not [name for name, content in seen.items() if SECRET.encode() in content]
    assert SECRET not in caplog.text
