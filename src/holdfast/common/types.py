"""Rows."""

from __future__ import annotations

from holdfast.types.row import Row, RowKind

__all__ = ["Row", "RowKind"]
