"""A sink to tables of PostgreSQL and SQLite."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from holdfast.connectors.delivery import DeliveryGuarantee
from holdfast.connectors.file_sink.formats import Columns, is_undeclared
from holdfast.connectors.sql.address import DatabaseAddress
from holdfast.connectors.sql.columns import encode_batch
from holdfast.connectors.sql.publishing import Publisher
from holdfast.connectors.sql.targets import StatementTarget, TableTarget, Target
from holdfast.connectors.staged_sink import StagedSink
from holdfast.connectors.staging import StagedRows
from holdfast.errors import ProgramError, RowTypeError
from holdfast.runtime.batch import Batch
from holdfast.runtime.sink import PublishOn, TransactionName
from holdfast.types.arrow import schema_of
from holdfast.types.resolve import resolve

#: About half a minute.
_MAX_RETRIES = 10


class SqlSink(StagedSink):
    """Rows become visible when their checkpoint has completed, all of it in one transaction of the database.

    They wait for that in files, so that only the driver connects. The fields of the stream's type are the columns.
    """

    kind = "SqlSink"

    def __init__(self, address: DatabaseAddress, target: Target, type_info: Any = None) -> None:
        super().__init__(None)
        self._address = address
        self._target = target
        self._ledger = "holdfast_ledger"
        self._max_retries = _MAX_RETRIES
        self._columns: Columns | None = None
        self._type = None if type_info is None else self._checked(type_info)
        self._type_is_given = type_info is not None

    @staticmethod
    def upsert(
        url: str, table: str, key: Sequence[str], *, user: str | None = None, password: str | None = None
    ) -> SqlSink:
        """A row takes the place of the one that has its key. The table needs a primary key or a unique index on exactly
        these columns.
        """
        columns = (key,) if isinstance(key, str) else tuple(key)
        if not columns:
            raise ProgramError(f"SqlSink.upsert to {table!r} needs a key; SqlSink.insert writes rows without one.")
        return SqlSink(DatabaseAddress.parse(url, user, password), TableTarget(table, columns))

    @staticmethod
    def insert(url: str, table: str, *, user: str | None = None, password: str | None = None) -> SqlSink:
        """Every row is a new one."""
        return SqlSink(DatabaseAddress.parse(url, user, password), TableTarget(table))

    @staticmethod
    def statement(url: str, sql: str, *, user: str | None = None, password: str | None = None) -> SqlSink:
        """``sql`` runs for each row, with ``?`` for its columns in their order."""
        return SqlSink(DatabaseAddress.parse(url, user, password), StatementTarget(sql))

    def set_delivery_guarantee(self, delivery_guarantee: DeliveryGuarantee) -> SqlSink:
        """Other than EXACTLY_ONCE, rows are visible at the end of each epoch, and written again when it runs again."""
        exactly = DeliveryGuarantee(delivery_guarantee) is DeliveryGuarantee.EXACTLY_ONCE
        self.publish_on = PublishOn.CHECKPOINT if exactly else PublishOn.EPOCH
        return self

    def set_staging_directory(self, directory: str) -> SqlSink:
        """Where rows wait: a path or URI that all executors and the driver see. Without it, in the directory of
        checkpoints.
        """
        self._directory = directory
        return self

    def set_ledger_table(self, table: str) -> SqlSink:
        """The table that says what was committed, ``holdfast_ledger`` unless set. It is created where it does not
        exist; all jobs may share one.
        """
        self._ledger = table
        return self

    def set_max_retries(self, max_retries: int) -> SqlSink:
        """How often a commit is tried again while the database is away, before the attempt fails."""
        if max_retries < 0:
            raise ProgramError(f"A SqlSink retries 0 times or more, not {max_retries}.")
        self._max_retries = max_retries
        return self

    def bind_type(self, type_info: Any) -> None:
        if not self._type_is_given:
            self._type = self._checked(type_info)

    def frame_of(self, batch: Batch) -> bytes:
        if self._columns is None:
            assert self._type is not None, "bind_type has set it"
            self._columns = Columns(self._type)
        rows = self._columns.of(batch)
        for name in self._target.key:
            if rows.column(name).null_count:
                raise RowTypeError(
                    f"A row for {self._target} has None as its key {name!r}, and no row could take its place. Filter "
                    "such rows out ahead of the sink, or give them a key."
                )
        return encode_batch(rows)

    def publish(self, job_id: str, operator_id: str, handles: Sequence[StagedRows]) -> None:
        self._publisher.publish((job_id, operator_id), handles)

    def fence(self, job_id: str, operator_id: str) -> None:
        self._publisher.fence((job_id, operator_id))

    def open_transactions(self, job_id: str) -> Iterable[TransactionName]:
        """It begins every attempt: the moment to find out that rows could not be written, before there are any."""
        assert self._type is not None, "bind_type has set it"
        self._publisher.check(schema_of(self._type))
        return super().open_transactions(job_id)

    @property
    def _publisher(self) -> Publisher:
        return Publisher(self._address, self._target, self._ledger, self._max_retries)

    def _checked(self, type_info: Any) -> Any:
        resolved = resolve(type_info)
        if is_undeclared(resolved):
            raise ProgramError(
                f"Rows for {self._target} need a declared type, whose fields are its columns. Give the operator before "
                "the sink an output_type, for instance 'user STRING, amount BIGINT'."
            )
        self._target.check_columns(schema_of(resolved).names)
        return resolved

    def __getstate__(self) -> dict[str, Any]:
        # Made of functions, and made anew where it is missing.
        return {**self.__dict__, "_columns": None}

    def __repr__(self) -> str:
        return f"SqlSink({self._target}, {self._address})"
