"""Barrier alignment of one task: pure bookkeeping over the senders it listens to.

In this engine a barrier closes its sender's epoch, so nothing follows it. The aligner does not rely on that: what was
sent behind a barrier is held back until the cut is taken (exactly once) or handed on at once (at least once), so that
a source may place a barrier inside its slice. What was sent before a barrier may arrive after it, because a level
sorts its envelopes: the barrier's count tells the two apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, TypeVar

from holdfast.errors import IncompleteInputError
from holdfast.runtime.envelope import Barrier

Message = TypeVar("Message")


class AlignmentMode(StrEnum):
    EXACTLY_ONCE = "EXACTLY_ONCE"
    AT_LEAST_ONCE = "AT_LEAST_ONCE"


@dataclass(slots=True)
class _Link:
    seen: set[int] = field(default_factory=set)
    barrier: Barrier | None = None


class Aligner(Generic[Message]):
    """Tells what may be processed now, and when the checkpoint's cut is complete."""

    def __init__(self, senders: Iterable[int], mode: AlignmentMode = AlignmentMode.EXACTLY_ONCE) -> None:
        self._links = {sender: _Link() for sender in senders}
        self._mode = mode
        self._held: list[Message] = []
        self._cut_taken = False

    def accept(self, sender: int, sequence: int, message: Message) -> Message | None:
        """The message if it may be processed now, None when it is held back until the cut is complete."""
        link = self._link(sender, sequence)
        if sequence in link.seen:
            raise IncompleteInputError(
                f"Message {sequence} of sender {sender} arrived twice: the shuffle delivered one execution more than "
                "once. "
                "The epoch is not accepted; the job goes back to its last checkpoint."
            )
        link.seen.add(sequence)
        behind = link.barrier is not None and sequence >= link.barrier.count
        if behind and not self._cut_taken and self._mode is AlignmentMode.EXACTLY_ONCE:
            self._held.append(message)
            return None
        return message

    def barrier(self, sender: int, barrier: Barrier) -> bool:
        """Note a barrier; True when it was the last one missing."""
        link = self._link(sender, -1)
        if link.barrier is not None:
            raise IncompleteInputError(
                f"Sender {sender} sent two barriers (nonces {link.barrier.nonce} and {barrier.nonce}): two "
                "executions of it were mixed."
            )
        overtaken = [sequence for sequence in link.seen if sequence >= barrier.count]
        if overtaken and self._mode is AlignmentMode.EXACTLY_ONCE:
            raise IncompleteInputError(
                f"Message {min(overtaken)} of sender {sender} arrived before the barrier that it was sent behind (of "
                f"{barrier.count} messages): "
                "it may be processed already, so no exact cut can be taken."
            )
        link.barrier = barrier
        return self.complete

    @property
    def listens(self) -> bool:
        """Whether there is anybody whose barrier it waits for."""
        return bool(self._links)

    @property
    def complete(self) -> bool:
        return all(link.barrier is not None for link in self._links.values())

    def release(self) -> list[Message]:
        """The cut is taken: what was held back behind barriers, and from now on nothing is."""
        if not self.complete:
            waiting = [sender for sender, link in self._links.items() if link.barrier is None]
            raise IncompleteInputError(f"The cut is not complete: the barriers of senders {waiting} are missing.")
        self._cut_taken = True
        held, self._held = self._held, []
        return held

    def verify(self, attempt: int, epoch: int, checkpoint_id: int | None) -> dict[int, str]:
        """The nonce of every sender; raises unless everything that was sent before the barriers has arrived."""
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
