"""Which connections stay when there are too many."""

from __future__ import annotations

from holdfast.server.admission import Admission, Connection, ConnectionLimits

LIMITS = ConnectionLimits(total=6, per_address=4, few=2)


def _admitted(admission: Admission, *addresses: str) -> list[Connection]:
    connections = [Connection(address) for address in addresses]
    for connection in connections:
        assert admission.admit(connection, short=False) == []
    return connections


def test_of_an_address_with_too_many_the_oldest_without_a_token_goes():
    admission = Admission(LIMITS)
    first, second, _, _, elsewhere = _admitted(admission, "a", "a", "a", "a", "b")
    first.trusted = True
    assert admission.admit(Connection("a"), short=False) == [second]
    assert not elsewhere.trusted


def test_of_too_many_in_all_one_of_the_address_with_the_most_goes():
    admission = Admission(LIMITS)
    _, crowded, *_ = _admitted(admission, "a", "b", "b", "b", "c", "d")
    assert admission.admit(Connection("a"), short=False) == [crowded]


def test_one_that_has_shown_a_token_is_never_closed_for_another():
    admission = Admission(LIMITS)
    for connection in _admitted(admission, "a", "a", "a", "a", "b", "b"):
        connection.trusted = True
    for address in ("a", "c"):
        newcomer = Connection(address)
        assert admission.admit(newcomer, short=False) == [newcomer]


def test_a_process_that_is_short_of_descriptors_keeps_a_few():
    admission = Admission(LIMITS)
    first, second, third, fourth = _admitted(admission, "a", "b", "c", "d")
    second.trusted = True
    assert admission.admit(Connection("e"), short=True) == [first, third, fourth]


def test_one_that_is_closed_makes_room():
    admission = Admission(LIMITS)
    first, *_ = _admitted(admission, "a", "a", "a", "a")
    admission.forget(first)
    assert admission.admit(Connection("a"), short=False) == []
