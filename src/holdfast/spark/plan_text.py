"""Spark's plan of a DataFrame as text, through ``explain()``, which can only print it."""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame

_one_at_a_time = threading.Lock()


def explained(frame: DataFrame, extended: bool = False) -> str:
    """The physical plan; with ``extended`` the logical ones before it."""
    with _printed() as text:
        frame.explain(extended)
    return text.getvalue()


class _OfThisThread(io.TextIOBase):
    """Takes what one thread prints, and passes on what others do."""

    def __init__(self, text: io.StringIO) -> None:
        self._text = text
        self._thread = threading.get_ident()
        self._others = sys.stdout

    def write(self, text: str) -> int:
        target = self._text if threading.get_ident() == self._thread else self._others
        return target.write(text)

    def flush(self) -> None:
        self._others.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._others, name)


@contextmanager
def _printed() -> Iterator[io.StringIO]:
    text = io.StringIO()
    with _one_at_a_time:
        before, ours = sys.stdout, _OfThisThread(text)
        sys.stdout = ours
        try:
            yield text
        finally:
            # Somebody else may have put something in its place meanwhile.
            if sys.stdout is ours:
                sys.stdout = before
