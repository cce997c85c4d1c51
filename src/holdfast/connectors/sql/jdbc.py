"""PyFlink's names for SQL sinks. No Java is involved."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.connectors.sql.address import DatabaseAddress
from holdfast.connectors.sql.sink import SqlSink
from holdfast.connectors.sql.targets import StatementTarget
from holdfast.coverage.answers import SaysWhatToUse, note_accepted
from holdfast.errors import ProgramError

_DEFAULT_RETRIES = 3


@dataclass(frozen=True)
class JdbcConnectionOptions:
    """Where the database is: ``jdbc:postgresql://host/database`` or ``jdbc:sqlite:path``."""

    url: str = field(repr=False)
    user_name: str | None = None
    password: str | None = field(default=None, repr=False)
    driver_name: str | None = None

    def get_db_url(self) -> str:
        return self.url

    def get_driver_name(self) -> str | None:
        return self.driver_name

    def get_user_name(self) -> str | None:
        return self.user_name

    def get_password(self) -> str | None:
        return self.password

    class JdbcConnectionOptionsBuilder:
        def __init__(self) -> None:
            self._url: str | None = None
            self._user: str | None = None
            self._password: str | None = None
            self._driver: str | None = None

        def with_url(self, url: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            self._url = url
            return self

        def with_driver_name(self, driver_name: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """No effect: the address says which database it is."""
            note_accepted("JdbcConnectionOptions.JdbcConnectionOptionsBuilder.with_driver_name")
            self._driver = driver_name
            return self

        def with_user_name(self, user_name: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            self._user = user_name
            return self

        def with_password(self, password: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            self._password = password
            return self

        def build(self) -> JdbcConnectionOptions:
            if self._url is None:
                raise ProgramError("JdbcConnectionOptions need with_url(...), such as jdbc:postgresql://host/database.")
            return JdbcConnectionOptions(self._url, self._user, self._password, self._driver)


@dataclass(frozen=True)
class JdbcExecutionOptions:
    """How statements are run."""

    max_retries: int | None = None
    batch_size: int = 5000
    batch_interval_ms: int = 0

    def get_batch_interval_ms(self) -> int:
        return self.batch_interval_ms

    def get_batch_size(self) -> int:
        return self.batch_size

    def get_max_retries(self) -> int:
        return _DEFAULT_RETRIES if self.max_retries is None else self.max_retries

    @staticmethod
    def builder() -> JdbcExecutionOptions.Builder:
        return JdbcExecutionOptions.Builder()

    @staticmethod
    def defaults() -> JdbcExecutionOptions:
        return JdbcExecutionOptions()

    class Builder:
        def __init__(self) -> None:
            self._options = JdbcExecutionOptions()

        def with_batch_size(self, size: int) -> JdbcExecutionOptions.Builder:
            """No effect: what a checkpoint holds is written at once."""
            note_accepted("JdbcExecutionOptions.Builder.with_batch_size")
            self._options = replace(self._options, batch_size=size)
            return self

        def with_batch_interval_ms(self, interval_ms: int) -> JdbcExecutionOptions.Builder:
            """No effect: rows are written when their checkpoint has completed."""
            note_accepted("JdbcExecutionOptions.Builder.with_batch_interval_ms")
            self._options = replace(self._options, batch_interval_ms=interval_ms)
            return self

        def with_max_retries(self, max_retries: int) -> JdbcExecutionOptions.Builder:
            self._options = replace(self._options, max_retries=max_retries)
            return self

        def build(self) -> JdbcExecutionOptions:
            return self._options


class JdbcSink(SaysWhatToUse):
    """Where PyFlink's programs find the sink."""

    @staticmethod
    def sink(
        sql: str,
        type_info: Any,
        jdbc_connection_options: JdbcConnectionOptions,
        jdbc_execution_options: JdbcExecutionOptions | None = None,
    ) -> SqlSink:
        """``sql`` runs for each row, with ``?`` for the fields of ``type_info``. Exactly once, which Flink's is not."""
        options = jdbc_connection_options
        address = DatabaseAddress.parse(options.url, options.user_name, options.password)
        made = SqlSink(address, StatementTarget(sql), type_info)
        retries = None if jdbc_execution_options is None else jdbc_execution_options.max_retries
        return made if retries is None else made.set_max_retries(retries)
