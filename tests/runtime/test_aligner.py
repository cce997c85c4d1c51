"""Barrier alignment: what may be processed when, and every input that must not be accepted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import IncompleteInputError
from holdfast.runtime.aligner import Aligner
from holdfast.runtime.envelope import Barrier
from holdfast.runtime.epoch import Consumed


def barrier(count: int, nonce: str = "n", attempt: int = 1, epoch: int = 5, checkpoint_id: int | None = 3) -> Barrier:
    return Barrier(attempt, epoch, checkpoint_id, "CHECKPOINT", nonce, count)


def test_the_cut_is_complete_when_every_sender_s_messages_and_barrier_are_there() -> None:
    aligner = Aligner({0, 1})
    for sender, sequence in [(0, 0), (1, 0), (0, 1)]:
        aligner.accept(sender, sequence)
    aligner.barrier(0, barrier(2, "x"))
    aligner.barrier(1, barrier(1, "y"))
    assert aligner.verify(1, 5, 3) == {0: Consumed("x", 2), 1: Consumed("y", 1)}


def test_messages_of_before_the_barrier_may_arrive_after_it() -> None:
    aligner = Aligner({0})
    aligner.accept(0, 2)
    aligner.barrier(0, barrier(3))
    aligner.accept(0, 0)
    aligner.accept(0, 1)
    assert aligner.verify(1, 5, 3) == {0: Consumed("n", 3)}


def test_a_message_behind_a_barrier_is_refused() -> None:
    aligner = Aligner({0})
    aligner.accept(0, 0)
    aligner.barrier(0, barrier(1))
    with pytest.raises(IncompleteInputError, match=r"Message 1 of sender 0 .* behind its barrier.*epoch 5 after 1"):
        aligner.accept(0, 1)


def test_a_message_that_overtook_its_barrier_is_refused() -> None:
    aligner = Aligner({0})
    aligner.accept(0, 0)
    aligner.accept(0, 1)
    with pytest.raises(IncompleteInputError, match=r"Message 1 of sender 0 was sent behind its barrier"):
        aligner.barrier(0, barrier(1))


def test_the_same_message_twice_is_refused() -> None:
    aligner = Aligner({0})
    aligner.accept(0, 0)
    with pytest.raises(IncompleteInputError, match="Message 0 of sender 0 arrived twice"):
        aligner.accept(0, 0)


def test_two_barriers_of_one_sender_are_refused_with_both_nonces() -> None:
    aligner = Aligner({0})
    aligner.barrier(0, barrier(0, "first"))
    with pytest.raises(IncompleteInputError, match="nonces first and second"):
        aligner.barrier(0, barrier(0, "second"))


@pytest.mark.parametrize("call", ["accept", "barrier"])
def test_an_unknown_sender_is_refused(call: str) -> None:
    aligner = Aligner({0, 1})
    with pytest.raises(IncompleteInputError, match="sender 7, which is none of the 2 that may"):
        if call == "accept":
            aligner.accept(7, 0)
        else:
            aligner.barrier(7, barrier(0))


def test_a_missing_barrier_is_refused() -> None:
    aligner = Aligner({0, 1})
    aligner.accept(1, 0)
    aligner.barrier(0, barrier(0))
    with pytest.raises(IncompleteInputError, match=r"No barrier from sender 1 in epoch 5 \(got 1 messages\)"):
        aligner.verify(1, 5, 3)


def test_a_missing_message_is_refused_and_named() -> None:
    aligner = Aligner({0})
    aligner.accept(0, 0)
    aligner.accept(0, 3)
    aligner.barrier(0, barrier(4))
    with pytest.raises(
        IncompleteInputError, match=r"2 of 4 messages of sender 0 are missing in epoch 5, the first is number 1"
    ):
        aligner.verify(1, 5, 3)


@pytest.mark.parametrize(
    "expected",
    [(2, 5, 3), (1, 6, 3), (1, 5, 4), (1, 5, None)],
    ids=["another attempt", "another epoch", "another checkpoint", "no checkpoint"],
)
def test_the_barrier_of_something_else_is_refused(expected: tuple[int, int, int | None]) -> None:
    aligner = Aligner({0})
    aligner.barrier(0, barrier(0))
    with pytest.raises(IncompleteInputError, match="sent the barrier of attempt 1, epoch 5, checkpoint 3; expected"):
        aligner.verify(*expected)


def test_a_sender_that_said_nothing_is_none_that_was_read() -> None:
    aligner = Aligner({0, 1})
    aligner.accept(1, 0)
    aligner.barrier(1, barrier(1))
    assert aligner.verify(1, 5, 3) == {1: Consumed("n", 1)}


def test_a_task_without_senders_is_complete() -> None:
    aligner = Aligner(set())
    assert aligner.verify(1, 1, None) == {}


@st.composite
def interleavings(draw: st.DrawFn) -> tuple[dict[int, int], list[tuple[int, int]]]:
    """Messages of each sender, and all of them in any order; the last of a sender has its barrier. One that loses its
    only message is silent, which a receiver cannot see.
    """
    senders = dict(enumerate(draw(st.lists(st.integers(2, 6), min_size=1, max_size=4))))
    messages = [(sender, sequence) for sender, count in senders.items() for sequence in range(count)]
    return senders, draw(st.permutations(messages))


def take(aligner: Aligner, senders: dict[int, int], sender: int, sequence: int) -> None:
    aligner.accept(sender, sequence)
    if sequence == senders[sender] - 1:
        aligner.barrier(sender, barrier(senders[sender], f"nonce-{sender}"))


@given(interleavings())
def test_any_order_of_all_messages_is_complete(case: tuple[dict[int, int], list[tuple[int, int]]]) -> None:
    senders, order = case
    aligner = Aligner(senders.keys())
    for message in order:
        take(aligner, senders, *message)
    assert aligner.verify(1, 5, 3) == {sender: Consumed(f"nonce-{sender}", n) for sender, n in senders.items()}


@given(interleavings(), st.data())
def test_one_message_less_or_more_is_never_accepted(
    case: tuple[dict[int, int], list[tuple[int, int]]], data: st.DataObject
) -> None:
    senders, order = case
    place = data.draw(st.integers(0, len(order) - 1))
    sender, _ = order[place]
    changed = data.draw(
        st.sampled_from(
            [
                order[:place] + order[place + 1 :],
                [*order, order[place]],
                [*order[:place], (sender, senders[sender]), *order[place:]],
            ]
        )
    )
    aligner = Aligner(senders.keys())
    with pytest.raises(IncompleteInputError):
        for message in changed:
            take(aligner, senders, *message)
        aligner.verify(1, 5, 3)
