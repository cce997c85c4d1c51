"""Holdfast: Apache Flink's state model for PySpark."""

from __future__ import annotations

import typing as _typing

if _typing.TYPE_CHECKING:
    from holdfast.datastream.restore import RestorePlan, plan_restore

__version__ = "0.1.0"
__all__ = ["RestorePlan", "plan_restore"]


def __getattr__(name: str) -> _typing.Any:
    # Loaded when it is asked for: executors import this package and need nothing of it.
    if name in __all__:
        from holdfast.datastream import restore

        return getattr(restore, name)
    raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
