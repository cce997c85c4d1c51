"""Barrier alignment: what may be processed when, and every input that must not be accepted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import IncompleteInputError
from holdfast.runtime.aligner import Aligner, AlignmentMode
from holdfast.runtime.envelope import Barrier


def barrier(count: int, nonce: str = "n", attempt: int = 1, epoch: int = 5, checkpoint_id: int | None = 3) -> Barrier:
    return Barrier(attempt, epoch, checkpoint_id, "CHECKPOINT", nonce, count)


def test_messages_before_barriers_pass_at_once() -> None:
    aligner: Aligner[str] = Aligner([0, 1])
    assert aligner.accept(0, 0, "a") == "a"
    assert aligner.accept(1, 0, "b") == "b"
    assert aligner.accept(0, 1, "c") == "c"
    assert not aligner.complete
    assert not aligner.barrier(0, barrier(2, "x"))
    assert aligner.barrier(1, barrier(1, "y"))
    assert aligner.complete
    assert aligner.verify(1, 5, 3) == {0: "x", 1: "y"}
    assert aligner.release() == []


def test_exactly_once_blocks_a_channel_behind_its_barrier_until_the_cut() -> None:
    aligner: Aligner[str] = Aligner([0, 1])
    assert aligner.accept(0, 0, "a0") == "a0"
    aligner.barrier(0, barrier(1))
    assert aligner.accept(0, 1, "a1") is None
    assert aligner.accept(1, 0, "b0") == "b0"
    assert aligner.accept(0, 2, "a2") is None
    assert aligner.barrier(1, barrier(1))
    assert aligner.accept(1, 1, "b1") is None
    assert aligner.release() == ["a1", "a2", "b1"]
    assert aligner.accept(0, 3, "a3") == "a3"
    assert aligner.release() == []


def test_at_least_once_processes_what_is_behind_a_barrier() -> None:
    aligner: Aligner[str] = Aligner([0, 1], AlignmentMode.AT_LEAST_ONCE)
    aligner.barrier(0, barrier(0))
    assert aligner.accept(0, 0, "a0") == "a0"
    assert aligner.accept(1, 0, "b0") == "b0"
    assert aligner.barrier(1, barrier(1))
    assert aligner.release() == []
    assert aligner.verify(1, 5, 3) == {0: "n", 1: "n"}


def test_messages_of_before_the_barrier_may_arrive_after_it() -> None:
    aligner: Aligner[str] = Aligner([0])
    assert aligner.accept(0, 2, "last") == "last"
    aligner.barrier(0, barrier(3))
    assert aligner.accept(0, 0, "first") == "first"
    assert aligner.accept(0, 1, "second") == "second"
    assert aligner.release() == []
    assert aligner.verify(1, 5, 3) == {0: "n"}


def test_a_message_that_overtakes_its_barrier_is_refused_in_exactly_once_mode() -> None:
    exact: Aligner[str] = Aligner([0])
    exact.accept(0, 0, "a")
    exact.accept(0, 1, "behind")
    with pytest.raises(IncompleteInputError, match=r"Message 1 of sender 0 arrived before the barrier"):
        exact.barrier(0, barrier(1))
    relaxed: Aligner[str] = Aligner([0], AlignmentMode.AT_LEAST_ONCE)
    relaxed.accept(0, 0, "a")
    relaxed.accept(0, 1, "behind")
    assert relaxed.barrier(0, barrier(1))


def test_the_same_message_twice_is_refused() -> None:
    aligner: Aligner[str] = Aligner([0])
    aligner.accept(0, 0, "a")
    with pytest.raises(IncompleteInputError, match="Message 0 of sender 0 arrived twice"):
        aligner.accept(0, 0, "a")


def test_two_barriers_of_one_sender_are_refused_with_both_nonces() -> None:
    aligner: Aligner[str] = Aligner([0])
    aligner.barrier(0, barrier(0, "first"))
    with pytest.raises(IncompleteInputError, match="nonces first and second"):
        aligner.barrier(0, barrier(0, "second"))


@pytest.mark.parametrize("call", ["accept", "barrier"])
def test_an_unknown_sender_is_refused(call: str) -> None:
    aligner: Aligner[str] = Aligner([0, 1])
    with pytest.raises(IncompleteInputError, match="sender 7, which is none of the 2 expected ones"):
        if call == "accept":
            aligner.accept(7, 0, "a")
        else:
            aligner.barrier(7, barrier(0))


def test_release_before_the_cut_is_refused_and_names_who_is_missing() -> None:
    aligner: Aligner[str] = Aligner([0, 1, 2])
    aligner.barrier(1, barrier(0))
    with pytest.raises(IncompleteInputError, match=r"senders \[0, 2\] are missing"):
        aligner.release()


def test_a_missing_barrier_is_refused() -> None:
    aligner: Aligner[str] = Aligner([0, 1])
    aligner.accept(1, 0, "a")
    aligner.barrier(0, barrier(0))
    with pytest.raises(IncompleteInputError, match=r"No barrier from sender 1 in epoch 5 \(got 1 messages\)"):
        aligner.verify(1, 5, 3)


def test_a_missing_message_is_refused_and_named() -> None:
    aligner: Aligner[str] = Aligner([0])
    aligner.accept(0, 0, "a")
    aligner.accept(0, 3, "d")
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
    aligner: Aligner[str] = Aligner([0])
    aligner.barrier(0, barrier(0))
    with pytest.raises(IncompleteInputError, match="sent the barrier of attempt 1, epoch 5, checkpoint 3; expected"):
        aligner.verify(*expected)


def test_a_task_without_senders_is_complete() -> None:
    aligner: Aligner[str] = Aligner([])
    assert aligner.complete
    assert aligner.verify(1, 1, None) == {}


@st.composite
def interleavings(draw: st.DrawFn) -> tuple[dict[int, tuple[int, int]], list[int]]:
    """Per sender (messages, how many are before the barrier), and whose event comes next, in each sender's order."""
    senders = {
        sender: (total, draw(st.integers(0, total)))
        for sender, total in enumerate(draw(st.lists(st.integers(0, 6), min_size=1, max_size=4)))
    }
    events = [sender for sender, (total, _) in senders.items() for _ in range(total + 1)]
    return senders, draw(st.permutations(events))


@given(interleavings(), st.sampled_from(AlignmentMode))
def test_the_cut_of_any_interleaving(case: tuple[dict[int, tuple[int, int]], list[int]], mode: AlignmentMode) -> None:
    senders, order = case
    aligner: Aligner[tuple[int, int]] = Aligner(senders, mode)
    position = dict.fromkeys(senders, 0)
    sent = dict.fromkeys(senders, 0)
    before_cut: list[tuple[int, int]] = []
    after_cut: list[tuple[int, int]] = []
    taken = False
    for sender in order:
        before = senders[sender][1]
        if position[sender] == before:
            if aligner.barrier(sender, barrier(before, f"nonce-{sender}")):
                taken = True
                after_cut += aligner.release()
        else:
            message = (sender, sent[sender])
            sent[sender] += 1
            if aligner.accept(*message, message) is not None:
                (after_cut if taken else before_cut).append(message)
        position[sender] += 1
    everything = {(sender, n) for sender, (total, _) in senders.items() for n in range(total)}
    in_cut = {(sender, n) for sender, (_, before) in senders.items() for n in range(before)}
    assert len(before_cut) + len(after_cut) == len(everything)
    assert set(before_cut) | set(after_cut) == everything
    if mode is AlignmentMode.EXACTLY_ONCE:
        assert set(before_cut) == in_cut
    else:
        assert set(before_cut) >= in_cut
    for sender in senders:
        assert [n for s, n in before_cut + after_cut if s == sender] == list(range(senders[sender][0]))
    assert aligner.verify(1, 5, 3) == {sender: f"nonce-{sender}" for sender in senders}
