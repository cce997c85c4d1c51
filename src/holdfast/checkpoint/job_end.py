"""How a job ended that must not begin again, and what a driver does that finds this out.

The record of an end comes first, and what follows from it second: checkpoints are deleted, and the rows of a savepoint
that the job was stopped with are published. So a driver can die in between, and the next one finds an end that is not
brought about. It is brought about then, by whoever finds it:

1. a driver that is told to go on from the savepoint that the job ended with does so, and restoring publishes its rows;
2. else an end whose rows are not published, or that was recorded while this driver stood by, is this driver's own: it
   does what is left, and ends as the record says;
3. else this driver is refused: another run would publish the results of the job again.
"""

from __future__ import annotations

import time

import msgspec

from holdfast.checkpoint.completed import CompletedCheckpoint
from holdfast.state.handles import CheckpointMetadata


class JobEnd(msgspec.Struct, frozen=True):
    """The content of the record."""

    #: Empty when it is not known how the job ended.
    status: str
    at: str
    #: What it ended with, and goes on from; its numbers tell it from others wherever it was copied to. A driver that
    #: died may have taken one of the same id.
    savepoint: str | None = None
    savepoint_id: int | None = None
    savepoint_attempt: int | None = None
    #: Whether all rows can be seen that the job leaves. Those of a savepoint that it is stopped with are published
    #: behind the record, so that no driver can take another way by then.
    published: bool = True
    #: Of the driver that recorded it.
    attempt: int | None = None

    @classmethod
    def now(
        cls,
        status: str,
        savepoint: CompletedCheckpoint | None = None,
        published: bool = True,
        attempt: int | None = None,
    ) -> JobEnd:
        return cls(
            status,
            time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            savepoint.location if savepoint is not None else None,
            savepoint.checkpoint_id if savepoint is not None else None,
            savepoint.metadata.attempt if savepoint is not None else None,
            published,
            attempt,
        )

    @classmethod
    def decode(cls, content: bytes) -> JobEnd:
        """A record that cannot be read counts: the job has ended."""
        try:
            return msgspec.json.decode(content, type=cls)
        except (msgspec.MsgspecError, ValueError):
            return cls("", "")

    def encode(self) -> bytes:
        return msgspec.json.encode(self)

    def with_rows_published(self) -> JobEnd:
        return msgspec.structs.replace(self, published=True)

    def is_same(self, other: JobEnd | None) -> bool:
        """Whether both are of one end, whatever was published of it since."""
        return other is not None and self.with_rows_published() == other.with_rows_published()

    def is_with(self, snapshot: CheckpointMetadata, job_id: str) -> bool:
        """Whether this is the savepoint that the job ended with."""
        numbers = job_id, self.savepoint_id, self.savepoint_attempt
        return (snapshot.job_id, snapshot.checkpoint_id, snapshot.attempt) == numbers

    def is_overtaken(self, begun_behind: frozenset[int]) -> bool:
        """Whether its driver recorded it when another one had the job, and had begun from a checkpoint of it. Whoever
        takes an end up begins from nothing but the savepoint that the job ended with.
        """
        return not begun_behind <= {self.savepoint_id}

    def still_holds(self, newest_checkpoint: int | None) -> bool:
        """Not when the job went on already, and has a checkpoint from behind the savepoint that it ended with."""
        if self.savepoint_id is None or newest_checkpoint is None:
            return True
        return newest_checkpoint <= self.savepoint_id
