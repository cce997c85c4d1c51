"""PyFlink's names for sinks to SQL databases."""

from __future__ import annotations

from holdfast.connectors.sql.jdbc import JdbcConnectionOptions, JdbcExecutionOptions, JdbcSink

__all__ = ["JdbcConnectionOptions", "JdbcExecutionOptions", "JdbcSink"]
