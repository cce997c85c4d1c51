"""Rows that came out against rows that had to."""

from __future__ import annotations

import pytest

from holdfast.testing.chaos.oracle import compare

EXPECTED = [(1, 10, 2.0), (1, 20, 3.0), (2, 10, 2.0)]


def test_the_same_rows_in_any_order_are_exactly_once():
    verdict = compare(EXPECTED, list(reversed(EXPECTED)), 30)
    assert verdict.exactly_once
    assert (verdict.expected, verdict.rows_out, verdict.rows_in) == (3, 3, 30)


@pytest.mark.parametrize(
    ("seen", "counts"),
    [
        (EXPECTED[:2], (1, 0, 0)),
        ([*EXPECTED, EXPECTED[0]], (0, 1, 0)),
        ([*EXPECTED, (1, 20, 3.5)], (0, 0, 1)),
        ([(1, 10, 2.0), (1, 20, 3.5), (2, 10, 2.0)], (1, 0, 1)),
        ([], (3, 0, 0)),
    ],
    ids=["lost", "repeated", "wrong", "changed", "nothing"],
)
def test_every_deviation_is_told_apart(seen, counts):
    verdict = compare(EXPECTED, seen)
    assert (verdict.lost, verdict.repeated, verdict.wrong) == counts
    assert not verdict.exactly_once


def test_no_expected_rows_prove_nothing():
    assert not compare([], []).exactly_once
