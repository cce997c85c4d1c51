"""PyFlink's futures."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


class CompletableFuture(Future[T]):
    """What a call on a job will give: ``result()`` waits for it, or raises what went wrong. Cancelling it does not
    cancel the job.
    """

    @classmethod
    def completed(cls, result: T) -> CompletableFuture[T]:
        """One that is done."""
        future: CompletableFuture[T] = cls()
        future.set_result(result)
        return future
