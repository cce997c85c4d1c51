"""Barrier alignment of one task: bookkeeping over the senders that it listens to.

The end of an epoch is the alignment. A barrier is the last message of its sender, so the cut is complete when every
sender's barrier is there, and a message behind one fails the epoch. What was sent before a barrier may arrive after it,
because a level sorts its envelopes: the barrier's count tells the two apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from holdfast.errors import IncompleteInputError
from holdfast.runtime.envelope import Barrier


@dataclass(slots=True)
class _Link:
    seen: set[int] = field(default_factory=set)
    barrier: Barrier | None = None


class Aligner:
    """Refuses what must not be processed, and knows the execution of every sender when the cut is complete."""

    def __init__(self, senders: Iterable[int]) -> None:
        self._links = {sender: _Link() for sender in senders}

    def accept(self, sender: int, sequence: int) -> None:
        """Whoever was not refused by an IncompleteInputError may process the message."""
        link = self._link(sender, sequence)
        if sequence in link.seen:
            raise IncompleteInputError(
                f"Message {sequence} of sender {sender} arrived twice: the shuffle delivered one execution more than "
                "once. "
                "The epoch is not accepted; the job goes back to its last checkpoint."
            )
        if link.barrier is not None and sequence >= link.barrier.count:
            raise _behind(sender, sequence, link.barrier)
        link.seen.add(sequence)

    def barrier(self, sender: int, barrier: Barrier) -> None:
        """Note the barrier of a sender, which is in the last of its messages."""
        link = self._link(sender, -1)
        if link.barrier is not None:
            raise IncompleteInputError(
                f"Sender {sender} sent two barriers (nonces {link.barrier.nonce} and {barrier.nonce}): two "
                "executions of it were mixed."
            )
        last = max(link.seen, default=-1)
        if last >= barrier.count:
            raise _behind(sender, last, barrier)
        link.barrier = barrier

    @property
    def listens(self) -> bool:
        """Whether there is anybody whose barrier it waits for."""
        return bool(self._links)

    def verify(self, attempt: int, epoch: int, checkpoint_id: int | None) -> dict[int, str]:
        """The nonce of every sender; raises unless all barriers, and all that was sent before them, have arrived."""
        nonces: dict[int, str] = {}
        for sender, link in self._links.items():
            barrier = link.barrier
            if barrier is None:
                raise IncompleteInputError(
                    f"No barrier from sender {sender} in epoch {epoch} (got {len(link.seen)} messages): the input is "
                    "not complete."
                )
            if (barrier.attempt, barrier.epoch, barrier.checkpoint_id) != (attempt, epoch, checkpoint_id):
                raise IncompleteInputError(
                    f"Sender {sender} sent the barrier of attempt {barrier.attempt}, epoch {barrier.epoch}, checkpoint "
                    f"{barrier.checkpoint_id}; expected attempt {attempt}, epoch {epoch}, checkpoint {checkpoint_id}."
                )
            missing = set(range(barrier.count)) - link.seen
            if missing:
                raise IncompleteInputError(
                    f"{len(missing)} of {barrier.count} messages of sender {sender} are missing in epoch {epoch}, "
                    f"the first is number {min(missing)}."
                )
            nonces[sender] = barrier.nonce
        return nonces

    def _link(self, sender: int, sequence: int) -> _Link:
        link = self._links.get(sender)
        if link is None:
            raise IncompleteInputError(
                f"Message {sequence} came from sender {sender}, which is none of the {len(self._links)} expected ones."
            )
        return link


def _behind(sender: int, sequence: int, barrier: Barrier) -> IncompleteInputError:
    return IncompleteInputError(
        f"Message {sequence} of sender {sender} was sent behind its barrier, which closes epoch {barrier.epoch} after "
        f"{barrier.count} messages: two executions of the sender were mixed. The epoch is not accepted; the job goes "
        "back to its last checkpoint."
    )
