"""What a SQL sink must do on every database."""

from __future__ import annotations

import datetime
import pickle
import random
import threading
import uuid
from abc import ABC, abstractmethod
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from holdfast.common import Row, Types
from holdfast.connectors.sql.sink import SqlSink
from holdfast.errors import ProgramError, RowTypeError, TransactionError
from holdfast.runtime.batch import Batch
from holdfast.runtime.sink import PublishOn
from holdfast.testing.chaos.processes import wait_until
from holdfast.testing.contracts.sinks import (
    JOB,
    OPERATOR,
    ExternalSinkContract,
    commit_in_process,
    pre_commit,
    transaction_name,
)
from tests.kit.faults import FaultPlan

PAIRS = "k BIGINT, v STRING"


class DatabaseUnderTest(ABC):
    """A database for the tests of one class."""

    url: str

    @abstractmethod
    def query(self, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement; its rows, if it has any."""

    @abstractmethod
    def stop(self) -> None:
        """Clients fail from now on."""

    @abstractmethod
    def start(self) -> None:
        """It is back, with what was committed."""

    def table(self, columns: str) -> str:
        """A new table under a name that no other test has."""
        name = f"t_{uuid.uuid4().hex[:8]}"
        self.query(f"CREATE TABLE {name} ({columns})")
        return name

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        return sorted(self.query(f"SELECT * FROM {table}"))


def bound(sink: SqlSink, directory: Path, type_info: Any = PAIRS) -> SqlSink:
    """As a job does it. Tests name their transactions alike, so each has a ledger of its own."""
    sink.bind_type(type_info)
    sink.bind_checkpoint_directory(str(directory / "checkpoints"))
    return sink.set_ledger_table(f"ledger_{uuid.uuid4().hex[:8]}")


def commit_and_die(sink: SqlSink, handles: list[bytes], directory: Path, point: str) -> None:
    """Commit in a process that is killed at a failpoint."""
    plan = FaultPlan(directory / uuid.uuid4().hex)
    plan.add(point, "kill")
    assert commit_in_process(sink, handles, directory, **plan.environment) == -9
    assert plan.not_reached() == []


class SqlSinkContract(ExternalSinkContract):
    @pytest.fixture
    @abstractmethod
    def database(self, tmp_path: Path) -> DatabaseUnderTest: ...

    @pytest.fixture
    def sink(self, database: DatabaseUnderTest, tmp_path: Path) -> SqlSink:
        self._database, self._table = database, database.table("value BIGINT")
        return bound(SqlSink.insert(database.url, self._table), tmp_path, int)

    @pytest.fixture
    def pairs(self, database: DatabaseUnderTest, tmp_path: Path) -> SqlSink:
        """An upserting sink."""
        self._database, self._table = database, database.table("k BIGINT PRIMARY KEY, v TEXT")
        return bound(SqlSink.upsert(database.url, self._table, ["k"]).set_max_retries(0), tmp_path)

    def visible(self, tmp_path: Path) -> list[int]:
        return [value for (value,) in self._database.rows(self._table)]

    @pytest.mark.parametrize("way", ["insert", "upsert", "statement"])
    def test_every_way_to_write_is_committed_once(self, database, tmp_path, way):
        table = database.table("k BIGINT PRIMARY KEY, v TEXT")
        made = {
            "insert": lambda: SqlSink.insert(database.url, table),
            "upsert": lambda: SqlSink.upsert(database.url, table, ["k"]),
            "statement": lambda: SqlSink.statement(database.url, f"INSERT INTO {table} (v, k) VALUES (?, ?)"),
        }
        rows = [(number, str(number)) for number in range(1000)]
        turned = [row[::-1] for row in rows] if way == "statement" else rows
        sink = bound(made[way](), tmp_path, "v STRING, k BIGINT" if way == "statement" else PAIRS)
        handles = [pre_commit(sink, turned[first::10], subtask=first) for first in range(10)]
        sink.commit(handles)
        database.query(f"DELETE FROM {table} WHERE k < 500")
        sink.recover_and_commit(handles)
        assert database.rows(table) == rows[500:]

    def test_the_last_row_of_a_key_counts_whatever_the_order_of_handles(self, pairs, tmp_path):
        rows = [(number % 7, f"{number}") for number in range(100)]
        handles = [pre_commit(pairs, rows[first : first + 10], epoch=1 + first // 10) for first in range(0, 100, 10)]
        shuffled = handles[:8]
        random.Random(7).shuffle(shuffled)
        pairs.recover_and_commit(shuffled)
        assert self._database.rows(self._table) == sorted(dict(rows[:80]).items())

        pairs.commit(handles[8:])

        assert self._database.rows(self._table) == sorted(dict(rows).items())

    @pytest.mark.parametrize("point", ["written", "recorded", "committed"])
    def test_a_commit_that_dies_anywhere_is_completed_once(self, database, tmp_path, point):
        table = database.table("k BIGINT, v TEXT")
        sink = bound(SqlSink.insert(database.url, table), tmp_path)
        first = [pre_commit(sink, [(1, "a"), (2, "b")], epoch=1)]
        sink.commit(first)
        handles = [pre_commit(sink, [(3, "c")], epoch=2), pre_commit(sink, [(4, "d")], epoch=2, subtask=1)]
        commit_and_die(sink, handles, tmp_path, f"sql-sink.{point}")
        assert len(database.rows(table)) == (4 if point == "committed" else 2)

        for _ in range(2):
            sink.recover_and_commit(handles)
            sink.recover_and_commit(first)

        assert database.rows(table) == [(1, "a"), (2, "b"), (3, "c"), (4, "d")]
        assert list(sink.open_transactions(JOB)) == []

    def test_jobs_and_operators_have_ledgers_of_their_own_in_one_table(self, database, tmp_path):
        table = database.table("value BIGINT")
        sink = bound(SqlSink.insert(database.url, table), tmp_path, int)
        handles = {job: [pre_commit(sink, [epoch], epoch=epoch, job=job) for epoch in range(9)] for job in ("a", "b")}
        for epoch in range(9):
            sink.commit([handles["a"][epoch]])
            sink.commit([handles["b"][epoch], handles["a"][epoch]])
        sink.recover_and_commit(handles["b"])

        assert database.rows(table) == sorted([(epoch,) for epoch in range(9)] * 2)
        owners = database.query(f"SELECT job_id, operator_id FROM {sink._ledger}")
        assert sorted(owners) == [("a", OPERATOR), ("b", OPERATOR)]

    def test_the_ledger_does_not_grow(self, pairs, tmp_path):
        sizes = []
        for epoch in range(20):
            pairs.commit([pre_commit(pairs, [(epoch, "x")], epoch=epoch)])
            sizes += self._database.query(f"SELECT length(marker) FROM {pairs._ledger}")
        assert len(sizes) == 20 and max(sizes) == max(sizes[:12])

    def test_a_database_that_is_away_loses_nothing(self, pairs, tmp_path):
        handle = pre_commit(pairs, [(1, "a")])
        self._database.stop()
        with pytest.raises(TransactionError, match=r"could not commit 1 transactions to table .*next attempt"):
            pairs.commit([handle])
        self._database.start()
        assert list(pairs.open_transactions(JOB)) == [transaction_name()]

        pairs.recover_and_commit([handle])

        assert self._database.rows(self._table) == [(1, "a")]

    def test_a_database_that_comes_back_is_waited_for(self, pairs, tmp_path, caplog):
        handle = pre_commit(pairs, [(1, "a")])
        pairs.set_max_retries(10)
        self._database.stop()
        committer = threading.Thread(target=pairs.commit, args=([handle],))
        committer.start()
        wait_until(lambda: "It is tried again" in caplog.text or None, 10, "a failed try")
        self._database.start()
        committer.join()
        assert self._database.rows(self._table) == [(1, "a")]

    def test_rows_that_the_table_does_not_take_leave_none_behind(self, database, tmp_path):
        table = database.table("k BIGINT PRIMARY KEY, v TEXT NOT NULL")
        sink = bound(SqlSink.insert(database.url, table), tmp_path)
        sink.commit([pre_commit(sink, [(1, "a")], epoch=1)])
        handles = [pre_commit(sink, [(2, "b"), (3, None)], epoch=2)]

        for _ in range(2):
            with pytest.raises(TransactionError, match=rf"(?s)table {table} .*(null|NULL).*correct the table"):
                sink.commit(handles)
            assert database.rows(table) == [(1, "a")]

        database.query(f"UPDATE {table} SET v = 'z'")
        assert list(sink.open_transactions(JOB)) == [transaction_name(epoch=2)]

    def test_damaged_rows_are_not_committed(self, pairs, tmp_path):
        handle = pre_commit(pairs, [(1, "a")])
        [file] = tmp_path.rglob("*.records")
        content = bytearray(file.read_bytes())
        content[-1] ^= 1
        file.write_bytes(content)
        with pytest.raises(TransactionError, match="checksum"):
            pairs.commit([handle])
        assert self._database.rows(self._table) == []

    @pytest.mark.parametrize(
        ("columns", "key", "seen"),
        [
            (None, ["k"], "t_missing"),
            ("k BIGINT PRIMARY KEY, w TEXT", ["k"], "v"),
            ("k BIGINT, v TEXT", ["k"], "ON CONFLICT"),
        ],
    )
    def test_a_table_that_does_not_fit_is_noticed_before_there_are_rows(self, database, tmp_path, columns, key, seen):
        table = "t_missing" if columns is None else database.table(columns)
        sink = bound(SqlSink.upsert(database.url, table, key), tmp_path)
        message = rf"cannot write to table {table} .*{seen}.*Rows have the columns k \(int64"
        with pytest.raises(ProgramError, match=message):
            sink.open_transactions(JOB)

    def test_a_row_without_a_key_is_refused_in_the_task(self, pairs, tmp_path):
        transaction = pairs.begin(transaction_name())
        with pytest.raises(RowTypeError, match="None as its key 'k'"):
            pairs.write(transaction, Batch([(1, "a"), (None, "b")]))

    def test_at_least_once_publishes_at_the_end_of_each_epoch(self, pairs, tmp_path):
        assert pairs.publish_on is PublishOn.CHECKPOINT
        assert pickle.loads(pickle.dumps(pairs.set_delivery_guarantee("at-least-once"))).publish_on is PublishOn.EPOCH

    def test_values_of_all_types_survive(self, database, tmp_path):
        fields = [Types.LONG(), Types.STRING(), Types.BOOLEAN(), Types.DOUBLE(), Types.BIG_DEC(), Types.SQL_DATE()]
        fields += [Types.SQL_TIMESTAMP(), Types.PRIMITIVE_ARRAY(Types.BYTE()), Types.LIST(Types.LONG())]
        names = list("abcdefghi")
        typed = Types.ROW_NAMED(names, fields)
        at = datetime.datetime(2020, 1, 2, 3, 4, 5, 678)
        row = Row(1, 'quo"te\n\\.', True, 0.1, Decimal("12.50"), at.date(), at, b"\x00\xff", [1, 2])
        table = database.table(self.all_types)
        for sink in (
            SqlSink.insert(database.url, table),
            SqlSink.statement(database.url, f"INSERT INTO {table} VALUES ({', '.join('?' * 9)})"),
        ):
            bound(sink, tmp_path, typed).open_transactions(JOB)
            sink.commit([pre_commit(sink, [row, Row(*[None] * 9), Row(2, "", *[None] * 7)], nonce=uuid.uuid4().hex)])
        full = database.query(f"SELECT DISTINCT * FROM {table} WHERE a = 1")
        assert full == [self.stored_row], full
        assert database.query(f"SELECT count(*) FROM {table} WHERE a IS NULL AND b IS NULL AND i IS NULL") == [(2,)]
        assert database.query(f"SELECT count(*) FROM {table} WHERE a = 2 AND b = '' AND c IS NULL") == [(2,)]

    #: The columns of nine types, and what a row of them is when it is read.
    all_types: str
    stored_row: tuple[Any, ...]
