"""Rows of a job while it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


class CloseableIterator:
    """Rows of a running job, as they are published. Closing it cancels the job."""

    def __init__(self, rows: Iterator[Any], close: Callable[[], None]) -> None:
        self._rows = rows
        self._close = close

    def __iter__(self) -> Iterator[Any]:
        return self._rows

    def __next__(self) -> Any:
        return next(self._rows)

    def next(self) -> Any:
        """The next row; StopIteration behind the last."""
        return next(self)

    def close(self) -> None:
        self._close()

    def __enter__(self) -> CloseableIterator:
        return self

    def __exit__(self, exc_type: object, exc_val: object, exc_tb: object) -> None:
        self.close()
