from __future__ import annotations

import pytest

from holdfast.checkpoint.job import JobOperator
from holdfast.checkpoint.restore_rules import match_operators
from holdfast.errors import RestoreError
from tests.checkpoint.samples import KEY_HASH, handle, keyed, keyed_file, metadata, record, snapshot

STATE = [snapshot(keyed=keyed(keyed_file()))]


def operator(operator_id: str, parallelism: int = 1, max_parallelism: int = 128, **more: object) -> JobOperator:
    return JobOperator(operator_id, f"op {operator_id}", parallelism, max_parallelism, **more)  # type: ignore[arg-type]


def test_operators_are_matched_by_id_and_new_ones_start_empty() -> None:
    stored = record("a", STATE)
    plan = match_operators(metadata(1, [stored]), [operator("a"), operator("new", max_parallelism=256)], KEY_HASH)
    assert plan.records == {"a": stored}
    assert plan.max_parallelism == {"a": 128, "new": 256}
    assert plan.skipped == ()


def test_a_uid_hash_comes_first_if_the_snapshot_has_it() -> None:
    by_hash, by_id = record("cafe", STATE), record("a", [snapshot()])
    plan = match_operators(metadata(1, [by_hash, by_id]), [operator("a", uid_hash="cafe")], KEY_HASH)
    assert plan.records == {"a": by_hash}
    plan = match_operators(metadata(1, [by_id]), [operator("a", uid_hash="cafe")], KEY_HASH)
    assert plan.records == {"a": by_id}


def test_two_operators_cannot_claim_one_state() -> None:
    operators = [operator("a"), operator("b", uid_hash="a")]
    with pytest.raises(RestoreError, match="'op a' and 'op b' both claim the state of operator a"):
        match_operators(metadata(1, [record("a", STATE)]), operators, KEY_HASH)


@pytest.mark.parametrize(
    "state",
    [STATE, [snapshot(operator_state=handle(inline=b"x"))], [snapshot(transactions=(b"t",))]],
    ids=["keyed", "operator", "transactions"],
)
def test_unclaimed_state_is_refused_unless_allowed(state: list[object]) -> None:
    lost = record("gone", state, uid="old-uid")  # type: ignore[arg-type]
    stored = metadata(1, [record("a", STATE), lost])
    with pytest.raises(
        RestoreError, match=r"gone .*'old-uid'.*execution\.state-recovery\.ignore-unclaimed-state: true"
    ) as caught:
        match_operators(stored, [operator("a")], KEY_HASH)
    assert "operators that are not in this program: gone" in str(caught.value)
    assert match_operators(stored, [operator("a")], KEY_HASH, allow_non_restored_state=True).skipped == (lost,)


def test_an_unclaimed_operator_without_state_is_no_loss() -> None:
    plan = match_operators(metadata(1, [record("gone", [snapshot()])]), [operator("a")], KEY_HASH)
    assert (plan.records, plan.skipped) == ({}, ())


def test_the_maximum_parallelism_of_the_snapshot_is_adopted() -> None:
    stored = metadata(1, [record("a", STATE, max_parallelism=64)])
    plan = match_operators(stored, [operator("a", parallelism=64)], KEY_HASH)
    assert plan.max_parallelism == {"a": 64}


def test_an_explicit_maximum_parallelism_must_be_that_of_the_snapshot() -> None:
    stored = metadata(1, [record("a", STATE, max_parallelism=64)])
    with pytest.raises(RestoreError, match=r"'op a' \(a\) sets maximum parallelism 128.*set 64, or none"):
        match_operators(stored, [operator("a", max_parallelism_explicit=True)], KEY_HASH)
    same = operator("a", max_parallelism=64, max_parallelism_explicit=True)
    assert match_operators(stored, [same], KEY_HASH).max_parallelism == {"a": 64}


@pytest.mark.parametrize("explicit", [False, True])
def test_parallelism_above_the_snapshots_maximum(explicit: bool) -> None:
    stored = metadata(1, [record("a", STATE, max_parallelism=64)])
    with pytest.raises(RestoreError, match=r"parallelism 65.*maximum parallelism 64: reduce its parallelism"):
        match_operators(stored, [operator("a", 65, max_parallelism_explicit=explicit)], KEY_HASH)


def test_an_operator_without_stored_state_may_change() -> None:
    stored = metadata(1, [record("a", [snapshot()], max_parallelism=64)])
    plan = match_operators(stored, [operator("a", 100, 256, max_parallelism_explicit=True)], KEY_HASH)
    assert plan.max_parallelism == {"a": 256}


def test_another_key_hash_is_refused() -> None:
    with pytest.raises(RestoreError, match="spreads keys with spark-xxhash64-42, this program with murmur3"):
        match_operators(metadata(1), [], "murmur3")
