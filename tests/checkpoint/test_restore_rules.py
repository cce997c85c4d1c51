from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast.checkpoint.job_facts import JobOperator
from holdfast.checkpoint.restore_rules import RestoreRules, decide, match_operators
from holdfast.errors import RestoreError
from holdfast.state.handles import RawKeyedSnapshot, SubtaskSnapshot
from tests.checkpoint.samples import KEY_HASH, handle, keyed, keyed_file, metadata, record, snapshot

STATE = [snapshot(keyed=keyed(keyed_file()))]
RULES = RestoreRules(KEY_HASH)
ALLOWED = RestoreRules(KEY_HASH, allow_non_restored_state=True)
CHANGING = RestoreRules(KEY_HASH, change_max_parallelism=True)


def operator(operator_id: str, parallelism: int = 1, max_parallelism: int = 128, **more: object) -> JobOperator:
    # Ignored: of any field.
    return JobOperator(operator_id, f"op {operator_id}", parallelism, max_parallelism, **more)  # type: ignore[arg-type]


def test_operators_are_matched_by_id_and_new_ones_start_empty() -> None:
    stored = record("a", STATE)
    plan = match_operators(metadata(1, [stored]), [operator("a"), operator("new", max_parallelism=256)], RULES)
    assert plan.records == {"a": stored}
    assert plan.max_parallelism == {"a": 128, "new": 256}
    assert plan.unclaimed == ()


def test_a_uid_hash_comes_first_if_the_snapshot_has_it() -> None:
    by_hash, by_id = record("cafe", STATE), record("a", [snapshot()])
    plan = match_operators(metadata(1, [by_hash, by_id]), [operator("a", uid_hash="cafe")], RULES)
    assert plan.records == {"a": by_hash}
    plan = match_operators(metadata(1, [by_id]), [operator("a", uid_hash="cafe")], RULES)
    assert plan.records == {"a": by_id}


def test_two_operators_cannot_claim_one_state() -> None:
    operators = [operator("a"), operator("b", uid_hash="a")]
    with pytest.raises(RestoreError, match="'op a' and 'op b' both claim the state of operator a"):
        match_operators(metadata(1, [record("a", STATE)]), operators, RULES)


@pytest.mark.parametrize(
    "state",
    [
        STATE,
        [snapshot(operator_state=handle(inline=b"x"))],
        [snapshot(raw_keyed=RawKeyedSnapshot(0, 127, handle(inline=b"x")))],
        [snapshot(raw_operator=handle(inline=b"x"))],
        [snapshot(transactions=(b"t",))],
    ],
    ids=["keyed", "operator", "raw keyed", "raw operator", "transactions"],
)
def test_unclaimed_state_is_refused_unless_allowed(state: list[object]) -> None:
    lost = record("gone", state, uid="old-uid")  # type: ignore[arg-type]  # of any field
    stored = metadata(1, [record("a", STATE), lost])
    with pytest.raises(
        RestoreError, match=r"gone .*'old-uid'.*execution\.state-recovery\.ignore-unclaimed-state: true"
    ) as caught:
        match_operators(stored, [operator("a")], RULES)
    assert "operators that are not in this program: gone" in str(caught.value)
    assert match_operators(stored, [operator("a")], ALLOWED).unclaimed == (lost,)


def test_an_unclaimed_operator_without_state_is_no_loss() -> None:
    plan = match_operators(metadata(1, [record("gone", [snapshot()])]), [operator("a")], RULES)
    assert (plan.records, plan.unclaimed) == ({}, ())


def test_a_keyed_operator_whose_state_is_empty_is_no_loss() -> None:
    empty = msgspec.structs.replace(keyed_file(), entries=0)
    stored = metadata(1, [record("gone", [snapshot(keyed=keyed(empty), watermark=7, finished=True)])])
    assert match_operators(stored, [operator("a")], RULES).unclaimed == ()


def test_state_found_by_position_is_warned_about() -> None:
    stored = metadata(1, [record("a", STATE), record("b", [snapshot()]), record("c", STATE)])
    operators = [operator("a"), operator("b"), operator("c", uid="named")]
    (warning,) = match_operators(stored, operators, RULES).warnings()
    assert "Operator 'op a' has no uid: its state was found by its position" in warning
    assert "set_uid_hash('a')" in warning


def test_state_that_is_left_behind_is_warned_about() -> None:
    (warning,) = match_operators(metadata(1, [record("gone", STATE)]), [operator("a")], ALLOWED).warnings()
    assert warning == "State of operator 'name of gone' (gone) is left behind: no operator of the program claims it."


@pytest.mark.parametrize(
    ("state", "change", "message"),
    [
        (STATE, {"keyed": False}, r"has keyed state of operator 'name of a'.*'op a' \(a\) is not behind a key_by"),
        ([snapshot(transactions=(b"t",))], {"is_sink": False}, r"has transactions of .*'op a' \(a\) is not a sink"),
    ],
    ids=["keyed", "transactions"],
)
def test_state_that_an_operator_cannot_have_any_more(state: list[Any], change: dict[str, Any], message: str) -> None:
    stored, operators = metadata(1, [record("a", state)]), [operator("a", uid="a", **change)]
    with pytest.raises(RestoreError, match=message + r".*ignore-unclaimed-state: true"):
        match_operators(stored, operators, RULES)
    (warning,) = match_operators(stored, operators, ALLOWED).warnings()
    assert "of operator 'op a' is left behind" in warning


def test_everything_that_is_refused_is_found_at_once() -> None:
    stored = metadata(1, [record("a", STATE, max_parallelism=64), record("gone", STATE)])
    operators = [operator("a", max_parallelism_explicit=True), operator("b", uid_hash="a")]
    found = decide(stored, operators, RestoreRules("murmur3"))
    assert [match.refusal is not None for match in found.operators] == [True, True]
    assert len(found.refusals()) == 4


def test_the_maximum_parallelism_of_the_snapshot_is_adopted() -> None:
    stored = metadata(1, [record("a", STATE, max_parallelism=64)])
    plan = match_operators(stored, [operator("a", parallelism=64)], RULES)
    assert plan.max_parallelism == {"a": 64}


def test_an_explicit_maximum_parallelism_must_be_that_of_the_snapshot() -> None:
    stored = metadata(1, [record("a", STATE, max_parallelism=64)])
    with pytest.raises(
        RestoreError,
        match=r"'op a' \(a\) sets maximum parallelism 128.*set 64, or none, or .*change-max-parallelism: true",
    ):
        match_operators(stored, [operator("a", max_parallelism_explicit=True)], RULES)
    same = operator("a", max_parallelism=64, max_parallelism_explicit=True)
    assert match_operators(stored, [same], RULES).max_parallelism == {"a": 64}


@pytest.mark.parametrize("explicit", [False, True])
def test_parallelism_above_the_snapshots_maximum(explicit: bool) -> None:
    stored = metadata(1, [record("a", STATE, max_parallelism=64)])
    with pytest.raises(RestoreError, match=r"parallelism 65.*maximum parallelism 64: reduce its parallelism"):
        match_operators(stored, [operator("a", 65, max_parallelism_explicit=explicit)], RULES)


@pytest.mark.parametrize("explicit", [False, True])
def test_the_maximum_parallelism_changes_on_request_and_says_what_it_costs(explicit: bool) -> None:
    stored = metadata(1, [record("a", [*STATE, snapshot(1, keyed=keyed(keyed_file(size=50)))], max_parallelism=64)])
    changed = operator("a", 100, 256, uid="a", max_parallelism_explicit=explicit)
    plan = match_operators(stored, [changed], CHANGING)
    assert plan.max_parallelism == {"a": 256}
    (warning,) = plan.warnings()
    assert "(64 to 256)" in warning
    assert "each of its 100 subtasks reads all 150 bytes of its keyed state" in warning
    assert "(15000 bytes in all), and the next checkpoint is full" in warning


def test_without_need_the_maximum_parallelism_does_not_change_on_request_either() -> None:
    stored = metadata(1, [record("a", STATE, max_parallelism=64)])
    plan = match_operators(stored, [operator("a", 64, 128, uid="a")], CHANGING)
    assert (plan.max_parallelism, plan.warnings()) == ({"a": 64}, [])


def test_raw_keyed_state_refuses_another_maximum_parallelism() -> None:
    raw = SubtaskSnapshot("a", 0, raw_keyed=RawKeyedSnapshot(0, 63, handle(inline=b"x")))
    stored = metadata(1, [record("a", [raw], max_parallelism=64)])
    with pytest.raises(RestoreError, match=r"'op a' \(a\) cannot change from 64 to 128: it has raw keyed state"):
        match_operators(stored, [operator("a", max_parallelism_explicit=True)], CHANGING)


def test_an_operator_without_stored_state_may_change() -> None:
    stored = metadata(1, [record("a", [snapshot()], max_parallelism=64)])
    plan = match_operators(stored, [operator("a", 100, 256, max_parallelism_explicit=True)], RULES)
    assert plan.max_parallelism == {"a": 256}


def test_another_key_hash_is_refused() -> None:
    with pytest.raises(RestoreError, match="spreads keys with spark-xxhash64-42, this program with murmur3"):
        match_operators(metadata(1), [], RestoreRules("murmur3"))


# -- operators that had finished

FINISHED = [snapshot(finished=True)]
FINISHED_WITH_STATE = [snapshot(keyed=keyed(keyed_file()), finished=True)]


def test_finished_operators_must_not_get_new_input() -> None:
    stored = metadata(1, [record("source", FINISHED), record("a", FINISHED_WITH_STATE)])
    fed = operator("a", inputs=("source", "new"))
    with pytest.raises(RestoreError, match=r"input of operator 'op a' \(a\) had ended, .* gets rows of 'op new'"):
        match_operators(stored, [operator("source"), operator("new"), fed], RULES)


def test_finished_operators_may_have_new_ones_behind_and_between_them() -> None:
    stored = metadata(1, [record("source", FINISHED), record("a", FINISHED_WITH_STATE)])
    between, behind = operator("between", inputs=("source",)), operator("behind", inputs=("a",))
    program = [operator("source"), between, operator("a", inputs=("between",)), behind]
    assert match_operators(stored, program, RULES).records.keys() == {"source", "a"}


def test_a_finished_operator_without_state_starts_anew_where_it_gets_new_input() -> None:
    stored = metadata(1, [record("source", FINISHED), record("a", FINISHED)])
    program = [operator("source"), operator("new"), operator("a", inputs=("source", "new"))]
    assert match_operators(stored, program, RULES).records.keys() == {"source"}
