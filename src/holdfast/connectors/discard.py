"""A sink that drops every row: for benchmarks, and for jobs that run for their side effects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from holdfast.errors import TransactionError
from holdfast.runtime.batch import Batch
from holdfast.runtime.sink import TransactionName, TwoPhaseCommitSink


class DiscardSink(TwoPhaseCommitSink):
    """Drops rows without reading them, so that rows which arrive as Arrow never become Python objects.

    It writes nothing: no transaction is ever open, and no handle joins a checkpoint.
    """

    def begin(self, name: TransactionName) -> None:
        return None

    def write(self, transaction: None, batch: Batch) -> None:
        return None

    def pre_commit(self, transaction: None) -> None:
        return None

    def discard(self, transaction: None) -> None:
        return None

    def commit(self, handles: Sequence[bytes]) -> None:
        for handle in handles:
            self.name_of(handle)

    def open_transactions(self, job_id: str) -> Iterable[TransactionName]:
        return ()

    def abort(self, name: TransactionName) -> None:
        return None

    def name_of(self, handle: bytes) -> TransactionName:
        raise TransactionError(
            f"a discarding sink was given the transaction handle {handle!r}, but it never makes one: "
            "the checkpoint belongs to another sink, which must keep its uid"
        )
