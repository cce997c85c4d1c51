"""Publishing staged rows in a database, each transaction once, whoever dies when.

The rows of a checkpoint and the marker that names their transactions are written in one transaction of the database,
which locks the marker first. So a marker that was read says what was published, and that nobody else is about to.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import groupby

import pyarrow as pa

from holdfast.connectors.markers import MOST_NAMES, Marker, due
from holdfast.connectors.sql.address import SQLITE, DatabaseAddress
from holdfast.connectors.sql.columns import decode_batch
from holdfast.connectors.sql.database import Database, Session
from holdfast.connectors.sql.postgres import PostgresDatabase
from holdfast.connectors.sql.sqlite import SqliteDatabase
from holdfast.connectors.sql.targets import Target
from holdfast.connectors.staging import StagedRows
from holdfast.errors import HoldfastError, ProgramError, TransactionError, TransactionRefusedError
from holdfast.failpoints import failpoint

logger = logging.getLogger(__name__)

_FIRST_DELAY_SECONDS = 0.1
_LONGEST_DELAY_SECONDS = 5.0
_AWAY = (
    "It was tried {} times. Check that the database runs, that the driver reaches it, and user and password. The "
    "checkpoint stays valid: the next attempt finds out what was committed, and commits the rest."
)


class Publisher:
    """Has a connection only while it publishes."""

    def __init__(self, address: DatabaseAddress, target: Target, ledger: str, max_retries: int) -> None:
        self._address = address
        self._database: Database = SqliteDatabase(address) if address.dialect == SQLITE else PostgresDatabase(address)
        self._target = target
        self._ledger = ledger
        self._max_retries = max_retries

    def check(self, schema: pa.Schema) -> None:
        """ProgramError unless rows of this schema can be written."""

        def look(session: Session) -> None:
            session.check(self._target, schema)
            self._ensure_ledger(session)

        columns = ", ".join(f"{field.name} ({field.type})" for field in schema)
        advice = f"Rows have the columns {columns}: create the table, or change the stream's type, so that they fit."
        self._retried(look, f"cannot write to {self._target}", ProgramError, advice)

    def fence(self, owner: tuple[str, str]) -> None:
        """Wait until nobody else publishes for a (job, operator)."""

        def wait(session: Session) -> None:
            self._lock(session, owner)

        advice = f"Its user must be able to read and change the table {self._ledger}."
        self._retried(wait, "could not look for other drivers", TransactionRefusedError, advice)

    def publish(self, owner: tuple[str, str], handles: Sequence[StagedRows]) -> None:
        """Publish those that were not published before, in their order."""
        for first in range(0, len(handles), MOST_NAMES):
            some = handles[first : first + MOST_NAMES]
            self._retried(
                partial(self._publish, owner=owner, handles=some),
                f"could not commit {len(some)} transactions to {self._target}",
                TransactionRefusedError,
                "The database has none of their rows, and the checkpoint stays valid: correct the table, and the next "
                "attempt commits them.",
            )
            for handle in some:
                handle.delete()

    def _publish(self, session: Session, owner: tuple[str, str], handles: Sequence[StagedRows]) -> None:
        marker = self._lock(session, owner)
        waiting = due(handles, marker, f"the table {self._ledger}")
        if not waiting:
            return
        # Transactions of two versions of the program may have other columns.
        for _, batches in groupby(_batches(waiting), key=lambda batch: batch.schema.names):
            session.write(self._target, batches)
        failpoint("sql-sink.written", operator=owner[1])
        session.record(self._ledger, owner, marker.after(handle.name for handle in waiting))
        failpoint("sql-sink.recorded", operator=owner[1])
        session.commit()
        failpoint("sql-sink.committed", operator=owner[1])

    def _lock(self, session: Session, owner: tuple[str, str]) -> Marker:
        self._ensure_ledger(session)
        return session.lock_marker(self._ledger, owner)

    def _ensure_ledger(self, session: Session) -> None:
        """In a transaction of its own."""
        if session.has_table(self._ledger):
            return
        statement = session.ledger_statement(self._ledger)
        try:
            session.execute(statement)
            session.commit()
            session.begin()
        except self._database.errors as cause:
            session.rollback()
            session.begin()
            # Another job may have been faster.
            if not session.has_table(self._ledger):
                raise ProgramError(
                    f"The SQL sink keeps a table of what it has committed, and could not create it at {self._address}: "
                    f"{self._database.message_of(cause)}. Let its user create tables, or create it for all jobs: "
                    f"{statement};"
                ) from cause

    def _retried(
        self, action: Callable[[Session], None], failed: str, kind: type[HoldfastError], advice: str
    ) -> None:
        """Every try has a connection of its own, and finds out anew what the one before has done. ``kind`` and
        ``advice`` are for errors that would come again."""
        delay = _FIRST_DELAY_SECONDS
        for left in range(self._max_retries, -1, -1):
            try:
                with closing(self._database.connect()) as session:
                    return action(session)
            except self._database.errors as error:
                message = f"The SQL sink {failed} at {self._address}: {self._database.message_of(error)}"
                if not self._database.is_transient(error):
                    raise kind(f"{message}. {advice}") from error
                if not left:
                    raise TransactionError(f"{message}. {_AWAY.format(self._max_retries + 1)}") from error
                logger.warning("%s. It is tried again in %.1f s", message, delay)
                time.sleep(delay)
                delay = min(2 * delay, _LONGEST_DELAY_SECONDS)


def _batches(handles: Sequence[StagedRows]) -> Iterator[pa.RecordBatch]:
    for handle in handles:
        handle.check()
        yield from map(decode_batch, handle.frames())
