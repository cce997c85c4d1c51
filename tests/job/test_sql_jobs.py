"""Whole jobs into SQLite, without Spark: a database that is away, another parallelism, a table that is not there."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from holdfast.common import Types, WatermarkStrategy
from holdfast.datastream.connectors.base import DeliveryGuarantee
from holdfast.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcSink
from holdfast.datastream.connectors.sql import SqlSink
from holdfast.errors import JobExecutionError, ProgramError, StoreVersionError, TransactionError
from holdfast.runtime.epoch import EpochSpec
from holdfast.testing.in_process import InProcessEngine
from tests.connectors.test_sql_sink import SqliteFile
from tests.integration.programs import Scripted, environment
from tests.job.counting import EPOCHS, count, counts_of, settings

COUNTS = Types.ROW_NAMED(["k", "n"], [Types.LONG(), Types.LONG()])
#: More keys than subtasks, so that all of them have rows.
MANY = [[(row % 20, row) for row in range(first, first + 40)] for first in range(0, 240, 40)]


@pytest.fixture
def database(tmp_path: Path) -> SqliteFile:
    made = SqliteFile(tmp_path / "the.db")
    made.query("CREATE TABLE counted (k BIGINT, n BIGINT)")
    made.query("CREATE TABLE newest (k BIGINT PRIMARY KEY, n BIGINT)")
    return made


def run(
    tmp_path: Path,
    database: SqliteFile,
    epochs: list[list[Any]],
    parallelism: int,
    guarantee: DeliveryGuarantee = DeliveryGuarantee.EXACTLY_ONCE,
    **changes: str,
) -> Any:
    """Count the rows of each key, into two tables."""
    env = environment(**settings(tmp_path, **changes)).set_parallelism(parallelism)
    source = env.from_source(Scripted(epochs), WatermarkStrategy.no_watermarks(), "script").uid("source")
    keyed = source.key_by(lambda row: row[0], Types.LONG())
    counts = keyed.map_with_state(count, state_type=int, output_type=COUNTS).uid("count")
    counted = SqlSink.insert(database.url, "counted").set_max_retries(0)
    newest = SqlSink.upsert(database.url, "newest", ["k"]).set_max_retries(0)
    for sink, uid in ((counted, "counted"), (newest, "newest")):
        counts.sink_to(sink.set_delivery_guarantee(guarantee)).uid(uid)
    return env.execute("counting").get_history()


def check(database: SqliteFile, epochs: list[list[Any]]) -> None:
    assert database.rows("counted") == counts_of(epochs)
    assert database.rows("newest") == sorted(dict(counts_of(epochs)).items())


def staged(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "chk").rglob("*.records"))


def test_a_database_that_is_back_after_a_restart_has_every_row_once(
    in_process: InProcessEngine, database: SqliteFile, tmp_path: Path
) -> None:
    back: list[threading.Timer] = []

    def lose(spec: EpochSpec) -> None:
        if spec.epoch in (3, 5) and len(back) < spec.epoch // 2:
            database.stop()
            back.append(threading.Timer(0.2, database.start))
            back[-1].start()

    in_process.after_epoch = lose
    many = {"restart-strategy.fixed-delay.attempts": "1000", "restart-strategy.fixed-delay.delay": "20 ms"}
    assert run(tmp_path, database, EPOCHS, 2, **many).restarts >= 2
    assert len(back) == 2
    check(database, EPOCHS)
    assert staged(tmp_path) == []


def test_rows_of_three_subtasks_that_wait_for_the_database_are_committed_by_a_job_with_two(
    in_process: InProcessEngine, database: SqliteFile, tmp_path: Path
) -> None:
    in_process.after_epoch = lambda spec: database.stop() if spec.epoch == 4 else None
    with pytest.raises(JobExecutionError) as caught:
        run(tmp_path, database, MANY, 3, **{"restart-strategy.type": "none"})
    assert isinstance(caught.value.__cause__, TransactionError)
    assert "The checkpoint stays valid" in str(caught.value.__cause__)
    waiting = {path.name.split("-")[2] for path in staged(tmp_path)}
    assert waiting == {"0", "1", "2"}, "rows of all subtasks wait"

    database.start()
    in_process.after_epoch = lambda spec: None
    run(tmp_path, database, MANY, 2)

    check(database, MANY)
    assert staged(tmp_path) == []


def test_a_table_that_is_not_there_ends_the_job_before_it_reads_anything(
    in_process: InProcessEngine, database: SqliteFile, tmp_path: Path
) -> None:
    database.query("DROP TABLE newest")
    with pytest.raises(JobExecutionError) as caught:
        run(tmp_path, database, EPOCHS, 2)
    assert isinstance(caught.value.__cause__, ProgramError)
    assert "no such table: newest" in str(caught.value.__cause__)
    assert in_process.epochs == []


def test_at_least_once_rows_are_there_at_the_end_of_their_epoch_and_again_after_a_failure(
    in_process: InProcessEngine, database: SqliteFile, tmp_path: Path
) -> None:
    in_process.last_checkpoint = 2
    visible: list[int] = []

    def fail(spec: EpochSpec) -> None:
        visible.append(len(database.rows("counted")))
        if len(visible) == 5:
            raise StoreVersionError("state is not on this host")

    in_process.before_epoch = fail
    run(tmp_path, database, EPOCHS, 2, DeliveryGuarantee.AT_LEAST_ONCE)

    assert visible[:5] == [0, 5, 10, 15, 20]
    rows = database.rows("counted")
    assert len(rows) > 30 and sorted(set(rows)) == counts_of(EPOCHS)
    assert database.rows("newest") == sorted(dict(counts_of(EPOCHS)).items())


def test_a_program_for_pyflinks_sink(in_process: InProcessEngine, database: SqliteFile, tmp_path: Path) -> None:
    env = environment(**settings(tmp_path))
    rows = env.from_collection([(1, 10), (2, 20), (1, 30)], type_info=Types.ROW([Types.LONG(), Types.LONG()]))
    connection = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(f"jdbc:sqlite:{database.path}").build()
    statement = "INSERT INTO newest (k, n) VALUES (?, ?) ON CONFLICT (k) DO UPDATE SET n = newest.n + EXCLUDED.n"
    rows.add_sink(JdbcSink.sink(statement, Types.ROW([Types.LONG(), Types.LONG()]), connection))
    env.execute("pyflink")
    assert database.rows("newest") == [(1, 40), (2, 20)]


def test_rows_that_the_database_refuses_end_the_job_until_the_table_is_corrected(
    in_process: InProcessEngine, tmp_path: Path
) -> None:
    """They are in a completed checkpoint: nobody loses them, and no attempt gets rid of them."""
    database = SqliteFile(tmp_path / "database.sqlite")
    database.query("CREATE TABLE counted (k BIGINT, n BIGINT CHECK (n < 3))")
    database.query("CREATE TABLE newest (k BIGINT PRIMARY KEY, n BIGINT)")
    limit = {"holdfast.restart.same-failures": "3", "holdfast.job-id": "a" * 32}
    with pytest.raises(JobExecutionError, match="in the same way 3 times") as caught:
        run(tmp_path, database, EPOCHS, parallelism=2, **limit)
    assert "CHECK constraint failed" in str(caught.value) and "correct the table" in str(caught.value)
    assert max(n for _, n in database.rows("counted")) < 3

    database.query("ALTER TABLE counted RENAME TO strict")
    database.query("CREATE TABLE counted AS SELECT * FROM strict")
    run(tmp_path, database, EPOCHS, parallelism=2, **limit)
    check(database, EPOCHS)
