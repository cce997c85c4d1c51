"""What markers say about the transactions of a sink."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.connectors.kafka.publishing import key_of, newest
from holdfast.connectors.markers import Marker
from holdfast.runtime.sink import TransactionName


def name(epoch: int, attempt: int = 1, subtask: int = 0, nonce: str = "n") -> TransactionName:
    return TransactionName("job", "operator", subtask, attempt, epoch, nonce)


def test_a_published_name_is_known_with_its_nonce() -> None:
    marker = Marker().after([name(3), name(3, subtask=1)])
    assert marker.has(name(3)) and marker.has(name(3, subtask=1))
    assert not marker.has(name(3, nonce="other")) and not marker.has(name(4))


@given(st.lists(st.integers(1, 5), min_size=1, max_size=40))
def test_what_was_published_long_ago_is_covered_and_nothing_else_is(sizes: list[int]) -> None:
    marker, epoch = Marker(), 0
    for size in sizes:
        marker = Marker.decode(marker.after(name(epoch + n) for n in range(size)).encode())
        epoch += size
    assert all(marker.covers(name(published)) for published in range(epoch))
    assert not marker.covers(name(epoch)) and not marker.covers(name(0, attempt=2))
    assert all(marker.has(name(epoch - 1 - n)) for n in range(sizes[-1]))
    assert len(marker.recent) <= 8


def test_an_attempt_of_an_earlier_life_of_the_job_says_nothing() -> None:
    marker = Marker().after([name(500)]).after([name(1, nonce="of the next life")])
    assert not marker.covers(name(2))


def test_large_transactions_leave_out_older_ones_but_never_the_last() -> None:
    marker = Marker().after([name(0)])
    for epoch in range(1, 4):
        marker = marker.after(name(epoch, subtask=number) for number in range(9_000))
    assert marker.has(name(3, subtask=8_999)) and not marker.has(name(0)) and marker.covers(name(0))
    assert len(marker.encode()) < 500_000


def test_the_newest_marker_of_a_key_counts() -> None:
    mine, other = key_of("job", "operator"), key_of("job", "another")
    first, second = Marker().after([name(1)]), Marker().after([name(2)])
    messages = [(mine, first.encode()), (mine, second.encode()), (other, first.encode())]
    assert newest(messages, mine) == second
    assert newest(messages, key_of("another job", "operator")) == Marker()
