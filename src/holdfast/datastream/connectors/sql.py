"""A sink to tables of PostgreSQL and SQLite."""

from __future__ import annotations

from holdfast.connectors.sql.sink import SqlSink

__all__ = ["SqlSink"]
