"""The order in which rows leave for their targets."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from holdfast.runtime.row_order import by_target, by_target_and_key


@st.composite
def rows(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, int]:
    """Targets and hashes of rows: the hash of a key decides its target."""
    parallelism = draw(st.integers(1, 200))
    keys = draw(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20))
    hashes = np.array(draw(st.lists(st.sampled_from(keys), max_size=200)), dtype=np.int64)
    return np.remainder(hashes, np.int64(parallelism)), hashes, parallelism


@given(rows())
def test_rows_of_a_target_are_together_and_those_of_a_key_stay_in_order(
    given_rows: tuple[np.ndarray, np.ndarray, int],
) -> None:
    targets, hashes, parallelism = given_rows
    for order in (by_target(targets), by_target_and_key(targets, hashes, parallelism)):
        assert sorted(order.tolist()) == list(range(len(targets)))
        assert np.all(np.diff(targets[order]) >= 0)
        for key in set(hashes.tolist()):
            assert np.all(np.diff(order[hashes[order] == key]) > 0)


def test_rows_of_a_key_are_beside_each_other() -> None:
    hashes = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, 1000, dtype=np.int64).repeat(20)
    np.random.default_rng(2).shuffle(hashes)
    ordered = hashes[by_target_and_key(np.remainder(hashes, 7), hashes, 7)]
    assert np.count_nonzero(np.diff(ordered)) == 999
