"""Classes by their names: one of the main program is another object in every process."""

from __future__ import annotations


def qualified_name(cls: type) -> str:
    """The name by which a class is stored and recognised."""
    return f"{cls.__module__}:{cls.__qualname__}"
