"""What a SQL sink asks of a database, whichever it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import pyarrow as pa

from holdfast.connectors.markers import Marker
from holdfast.connectors.sql.targets import Target, quoted

_LEDGER_COLUMNS = "job_id TEXT, operator_id TEXT, marker {}, committed_at {}, PRIMARY KEY (job_id, operator_id)"


class Database(ABC):
    """How one kind of database is spoken to."""

    #: What its client raises.
    errors: tuple[type[Exception], ...]

    @abstractmethod
    def connect(self) -> Session: ...

    @abstractmethod
    def is_transient(self, error: Exception) -> bool:
        """Whether the same may succeed a moment later."""

    @abstractmethod
    def message_of(self, error: Exception) -> str:
        """One line."""


class Session(ABC):
    """One connection, on which a transaction is open. What was not committed when it is closed never was."""

    #: Placeholders are this and their number.
    mark: ClassVar[str]
    bytes_type: ClassVar[str]
    time_type: ClassVar[str]
    #: Ends a query whose rows others must not change meanwhile.
    row_lock: ClassVar[str]

    @abstractmethod
    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows that it gives."""

    @abstractmethod
    def has_table(self, table: str) -> bool: ...

    @abstractmethod
    def check(self, target: Target, schema: pa.Schema) -> None:
        """An error of the database unless rows of this schema can be written; nothing is written."""

    @abstractmethod
    def write(self, target: Target, batches: Iterable[pa.RecordBatch]) -> None:
        """All batches have the same columns."""

    @abstractmethod
    def begin(self) -> None:
        """Another transaction, behind ``commit`` or ``rollback``."""

    @abstractmethod
    def commit(self) -> None:
        """Durable when it returns."""

    @abstractmethod
    def rollback(self) -> None: ...

    @abstractmethod
    def close(self) -> None: ...

    def ledger_statement(self, table: str) -> str:
        """What creates a ledger."""
        return f"CREATE TABLE {quoted(table)} ({_LEDGER_COLUMNS.format(self.bytes_type, self.time_type)})"

    def lock_marker(self, table: str, owner: tuple[str, str]) -> Marker:
        """What was published for a (job, operator). Until the transaction ends nobody else can publish for it."""
        ledger, job, operator = quoted(table), f"{self.mark}1", f"{self.mark}2"
        row = f"(job_id, operator_id) VALUES ({job}, {operator})"
        self.execute(f"INSERT INTO {ledger} {row} ON CONFLICT DO NOTHING", owner)
        of_owner = f"WHERE job_id = {job} AND operator_id = {operator}"
        [(marker,)] = self.execute(f"SELECT marker FROM {ledger} {of_owner}{self.row_lock}", owner)
        return Marker() if marker is None else Marker.decode(marker)

    def record(self, table: str, owner: tuple[str, str], marker: Marker) -> None:
        mark = self.mark
        self.execute(
            f"UPDATE {quoted(table)} SET marker = {mark}3, committed_at = CURRENT_TIMESTAMP "
            f"WHERE job_id = {mark}1 AND operator_id = {mark}2",
            (*owner, marker.encode()),
        )
