"""Barrier alignment of one task: bookkeeping over the senders that it listens to.

The end of an epoch is the alignment. A barrier is the last message of its sender, so a sender is complete when its
barrier is there with all that it counts, and a message behind one fails the epoch. What was sent before a barrier may
arrive after it, because a level sorts its envelopes: the barrier's count tells the two apart.

Who has nothing to send sends no barrier either. That nobody's messages were lost whole is compared by the driver, which
knows of both sides, before it accepts the epoch.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from holdfast.errors import IncompleteInputError
from holdfast.runtime.envelope import Barrier
from holdfast.runtime.epoch import Consumed


@dataclass(slots=True)
class _Link:
    seen: set[int] = field(default_factory=set)
    barrier: Barrier | None = None


class Aligner:
    """Refuses what must not be processed, and knows what it has of every sender when the cut is complete."""

    def __init__(self, senders: AbstractSet[int]) -> None:
        self._senders = senders
        self._links: dict[int, _Link] = {}

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

    def verify(self, attempt: int, epoch: int, checkpoint_id: int | None) -> dict[int, Consumed]:
        """What was read of every sender that sent something; raises unless its barrier, and all that was sent before
        it, have arrived.
        """
        consumed: dict[int, Consumed] = {}
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
            consumed[sender] = Consumed(barrier.nonce, barrier.count)
        return consumed

    def _link(self, sender: int, sequence: int) -> _Link:
        link = self._links.get(sender)
        if link is None:
            if sender not in self._senders:
                raise IncompleteInputError(
                    f"Message {sequence} came from sender {sender}, which is none of the {len(self._senders)} that may "
                    "send to this task."
                )
            link = self._links[sender] = _Link()
        return link


def _behind(sender: int, sequence: int, barrier: Barrier) -> IncompleteInputError:
    return IncompleteInputError(
        f"Message {sequence} of sender {sender} was sent behind its barrier, which closes epoch {barrier.epoch} after "
        f"{barrier.count} messages: two executions of the sender were mixed. The epoch is not accepted; the job goes "
        "back to its last checkpoint."
    )
