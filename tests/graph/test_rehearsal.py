"""A rehearsal says what a restore does, and a restore does what the rehearsal says."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast
from holdfast.checkpoint.restore_rules import match_operators
from holdfast.checkpoint.storage import open_snapshot
from holdfast.common import Time, Types
from holdfast.datastream.state import ListStateDescriptor, MapStateDescriptor, StateTtlConfig, ValueStateDescriptor
from holdfast.errors import HoldfastError
from holdfast.graph.facts_of_graph import job_facts
from holdfast.graph.job_graph import build_job_graph, operator_id_of_uid
from holdfast.job.restore_plan import RestorePlan
from holdfast.job.restore_point import restore_rules
from holdfast.runtime.epoch import Acknowledgement
from holdfast.runtime.restored_state import written_lists
from holdfast.state.handles import OperatorRecord
from holdfast.state.outcomes import Fate
from holdfast.state.snapshot_io import SnapshotReader
from tests.graph.evolving_program import BUFFER, COUNTER, EXTRA, ROWS, Version, default_keyed, default_lists
from tests.graph.restored_jobs import CHECKPOINT, FORMS, StoredJob, environment
from tests.kit.properties import examples
from tests.runtime.local_job import rows_of

FIRST = Version()
CHANGE_MAXIMUM = {"holdfast.recovery.change-max-parallelism": "true"}
ALLOW_LOSS = {"execution.state-recovery.ignore-unclaimed-state": "true"}


@pytest.fixture(scope="module", params=FORMS)
def stored(request: pytest.FixtureRequest) -> Iterator[str]:
    """The checkpoint, or savepoint, of the first version: two subtasks, maximum parallelism 128."""
    with tempfile.TemporaryDirectory() as directory:
        yield take_snapshot(FIRST, Path(directory), request.param)


def take_snapshot(version: Version, root: Path, form: str = CHECKPOINT) -> str:
    job = StoredJob(environment(version), root)
    assert len(job.rows()) == len(ROWS)
    path, _ = job.stored(1, form)
    job.close()
    return path


class Restored(NamedTuple):
    """What became of every (operator, state), how much each (level, slot) read, and the rows of the next epoch; or why
    there are none.
    """

    fates: dict[tuple[str, str], Fate]
    bytes_read: dict[tuple[int, int], int]
    rows: list[tuple[int, int]]
    error: str | None = None


def restore(version: Version, path: str, **settings: Any) -> Restored:
    """Really restore it, and look at what it writes then."""
    env = environment(version, **settings)
    with tempfile.TemporaryDirectory() as directory:
        try:
            job = StoredJob(env, Path(directory), path)
            _, metadata = job.checkpoint(2)
        except HoldfastError as error:
            return Restored({}, {}, [], str(error))
        _, reader = open_snapshot(str(Path(directory) / "checkpoints" / "job" / "chk-2"))
        old, old_reader = open_snapshot(path)
        facts = job_facts(build_job_graph(env.get_stream_graph(), "job", "job", env.job_settings(), 2))
        records = match_operators(old, facts.operators, restore_rules(env.job_settings().recovery)).records
        fates = {
            (record.name, name): fate
            for record in metadata.operators
            for name, fate in fates_of(records.get(record.operator_id), old_reader, record, reader).items()
        }
        job.close()
        return Restored(fates, bytes_by_task(job.acknowledged), sorted(rows_of(job.acknowledged)))


def fates_of(
    old: OperatorRecord | None, old_reader: SnapshotReader, new: OperatorRecord, reader: SnapshotReader
) -> dict[str, Fate]:
    before = types_of(old, old_reader) if old is not None else {}
    after = types_of(new, reader)
    return {
        name: Fate.NEW if name not in before else Fate.KEPT if before[name] == types else Fate.MIGRATED
        for name, types in after.items()
    }


def types_of(record: OperatorRecord, reader: SnapshotReader) -> dict[str, Any]:
    keyed = {m.name: (m.serializers, m.ttl) for s in record.subtasks if s.keyed is not None for m in s.keyed.states}
    return keyed | {state.name: state.serializers for state in written_lists(record, reader)}


def bytes_by_task(acknowledged: list[Acknowledgement]) -> dict[tuple[int, int], int]:
    return {(a.level, a.slot): a.restored_bytes for a in acknowledged if a.restored_bytes}


def planned_bytes(plan: RestorePlan, version: Version, path: str, **settings: Any) -> dict[tuple[int, int], int]:
    """What all operators of a task's chains read, by task."""
    with tempfile.TemporaryDirectory() as directory:
        job_plan = StoredJob(environment(version, **settings), Path(directory), path).job.plan
    reads: dict[tuple[int, int], int] = defaultdict(int)
    operators = {operator.operator_id: operator for operator in plan.operators}
    for chain in job_plan.chains:
        for spec in chain.operators:
            for slot, number in enumerate(operators[spec.operator_id].bytes_per_subtask):
                reads[chain.level, slot] += number
    return {task: number for task, number in reads.items() if number}


def rehearse(version: Version, path: str, **settings: Any) -> RestorePlan:
    return holdfast.plan_restore(environment(version, **settings), path)


def fates(plan: RestorePlan, without: Fate | None = None) -> dict[tuple[str, str], Fate]:
    return {
        (operator.name, one.state): one.fate
        for operator in plan.operators
        for one in operator.states
        if one.fate is not without
    }


def check_agreement(version: Version, path: str, **settings: Any) -> RestorePlan:
    plan, actual = rehearse(version, path, **settings), restore(version, path, **settings)
    assert plan.possible == (actual.error is None), (actual.error, str(plan))
    if actual.error is not None:
        assert any(reason.rstrip(".") in actual.error for reason in plan.refusals()), (actual.error, plan.refusals())
    else:
        assert fates(plan, without=Fate.DROPPED) == actual.fates
        assert planned_bytes(plan, version, path, **settings) == actual.bytes_read
        if version.key_by and version.keyed and not version.extra:
            kept = fates(plan, without=Fate.DROPPED)[COUNTER, "total"] is not Fate.NEW
            assert actual.rows == sorted((row[0], n + (4 if kept else 1)) for n in range(3) for row in ROWS[:40])
    return plan


def with_total(type_info: Any, ttl: bool = False) -> tuple[Any, ...]:
    total = ValueStateDescriptor("total", type_info)
    if ttl:
        total.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
    return total, *default_keyed()[1:]


TIMERS = {(COUNTER, "_timers/event_time/user"): Fate.KEPT, (COUNTER, "_timers/processing_time/user"): Fate.KEPT}
KEPT = {
    ("rows", "_positions"): Fate.KEPT,
    **{(COUNTER, name): Fate.KEPT for name in ("total", "seen", "places")},
    **TIMERS,
    **{(BUFFER, name): Fate.KEPT for name in ("mine", "ours", "rules")},
}


@pytest.mark.parametrize(
    "version",
    [
        FIRST,
        replace(FIRST, counter_parallelism=3, buffer_parallelism=5),
        replace(FIRST, counter_parallelism=16, buffer_parallelism=1),
        replace(FIRST, counter_parallelism=1, buffer_parallelism=7),
        replace(FIRST, chained=False),
        replace(FIRST, keyed=(), lists=()),
    ],
    ids=["as it was", "3 and 5", "16 and 1", "1 and 7", "other chains", "states that nobody asks for"],
)
def test_what_keeps_all_state(stored: str, version: Version) -> None:
    assert fates(check_agreement(version, stored)) == KEPT


@pytest.mark.parametrize(
    ("version", "changed"),
    [
        (replace(FIRST, keyed=with_total(Types.LONG())), {(COUNTER, "total"): Fate.MIGRATED}),
        (replace(FIRST, keyed=with_total(Types.INT(), ttl=True)), {(COUNTER, "total"): Fate.MIGRATED}),
        (
            replace(FIRST, keyed=with_total(Types.LONG(), ttl=True), counter_parallelism=3),
            {(COUNTER, "total"): Fate.MIGRATED},
        ),
        (
            replace(FIRST, keyed=(*default_keyed(), ListStateDescriptor("later", Types.INT()))),
            {(COUNTER, "later"): Fate.NEW},
        ),
        (
            replace(
                FIRST,
                lists=(
                    ("get_list_state", ListStateDescriptor("mine", Types.LONG())),
                    *default_lists()[1:],
                    ("get_broadcast_state", MapStateDescriptor("more rules", Types.LONG(), Types.LONG())),
                ),
            ),
            {(BUFFER, "mine"): Fate.MIGRATED, (BUFFER, "more rules"): Fate.NEW},
        ),
        (
            replace(FIRST, extra=True),
            {
                (EXTRA, "more"): Fate.NEW,
                (EXTRA, "_timers/event_time/user"): Fate.NEW,
                (EXTRA, "_timers/processing_time/user"): Fate.NEW,
            },
        ),
    ],
    ids=["a wider type", "a time to live", "both, on 3 subtasks", "a state more", "operator state", "an operator more"],
)
def test_what_changes_some_state(stored: str, version: Version, changed: dict[Any, Fate]) -> None:
    assert fates(check_agreement(version, stored)) == KEPT | changed


@pytest.mark.parametrize(
    ("version", "refused", "message"),
    [
        (replace(FIRST, keyed=with_total(Types.STRING())), "total", "stored as value state with value type INT"),
        (
            replace(FIRST, keyed=(ListStateDescriptor("total", Types.INT()), *default_keyed()[1:])),
            "total",
            "a state cannot change its kind",
        ),
        (replace(FIRST, key_type=Types.INT()), "total", "The key type of operator 'counter' was LONG"),
        (
            replace(FIRST, lists=(("get_union_list_state", ListStateDescriptor("mine", Types.INT())),)),
            "mine",
            "state assignment modes",
        ),
        (replace(FIRST, buffer=False), "rules", "has state of operators that are not in this program"),
        (replace(FIRST, counter_uid="renamed"), "total", "has state of operators that are not in this program"),
        (replace(FIRST, key_by=False), "total", "is not behind a key_by"),
        (replace(FIRST, counter_max_parallelism=64), "total", "sets maximum parallelism 64, and its state was"),
        (replace(FIRST, counter_parallelism=130), "total", "reduce its parallelism to at most 128"),
    ],
    ids=[
        "another type",
        "another kind",
        "another key type",
        "another mode",
        "an operator less",
        "another uid",
        "no key",
        "another maximum parallelism",
        "too many subtasks",
    ],
)
def test_what_is_refused_and_why(stored: str, version: Version, refused: str, message: str) -> None:
    plan = check_agreement(version, stored)
    outcomes = [one for operator in plan.operators for one in operator.states if one.state == refused]
    assert [one.fate for one in outcomes if message in one.detail] == [Fate.REFUSED]
    assert message in str(plan)


def test_a_time_to_live_that_comes_or_goes(stored: str, tmp_path: Path) -> None:
    expiring = replace(FIRST, keyed=with_total(Types.INT(), ttl=True))
    comes = check_agreement(expiring, stored).operator(COUNTER).state("total")
    assert comes.detail == "gets a time to live: all of it counts as accessed at the restore"
    path = take_snapshot(expiring, tmp_path)
    goes = check_agreement(FIRST, path).operator(COUNTER).state("total")
    assert goes.fate is Fate.MIGRATED
    assert goes.detail == "loses its time to live: what had expired and was not yet removed stays"
    assert check_agreement(expiring, path).operator(COUNTER).state("total").fate is Fate.KEPT


def test_one_refusal_does_not_hide_another(stored: str) -> None:
    keyed = (ValueStateDescriptor("total", Types.STRING()), ListStateDescriptor("seen", Types.STRING()))
    lists = [("get_list_state", ListStateDescriptor(name, Types.STRING())) for name in ("mine", "ours")]
    plan = rehearse(replace(FIRST, keyed=keyed, lists=tuple(lists), counter_uid=COUNTER), stored)
    refused = [state for state, fate in fates(plan).items() if fate is Fate.REFUSED]
    assert refused == [(COUNTER, "seen"), (COUNTER, "total"), (BUFFER, "mine"), (BUFFER, "ours")]
    assert len(plan.refusals()) == 4


def test_state_that_may_be_lost_is_dropped(stored: str) -> None:
    plan = check_agreement(replace(FIRST, buffer=False), stored, **ALLOW_LOSS)
    assert {state.fate for state in plan.operator(BUFFER).states} == {Fate.DROPPED}
    plan = check_agreement(replace(FIRST, key_by=False), stored, **ALLOW_LOSS)
    assert plan.operator(COUNTER).state("total").fate is Fate.DROPPED


def test_a_uid_hash_takes_over_the_state_of_another_operator(stored: str) -> None:
    version = replace(FIRST, counter_uid="renamed", counter_uid_hash=operator_id_of_uid(COUNTER).upper())
    assert fates(check_agreement(version, stored)) == KEPT


def test_state_is_found_by_position_with_a_warning(tmp_path: Path) -> None:
    version = replace(FIRST, counter_uid=None)
    path = take_snapshot(version, tmp_path)
    plan = check_agreement(version, path)
    assert fates(plan) == KEPT
    (warning,) = [warning for operator in plan.operators for warning in operator.warnings]
    assert "Operator 'counter' has no uid: its state was found by its position" in warning
    moved = replace(version, extra=True)
    assert fates(check_agreement(moved, path))[COUNTER, "total"] is Fate.KEPT
    (number,) = [operator.operator_id for operator in plan.operators if operator.name == COUNTER]
    named = replace(FIRST, counter_uid="named", counter_uid_hash=number)
    assert fates(check_agreement(named, path)) == KEPT


@pytest.mark.parametrize("backend", ["heap", "lmdb"])
@pytest.mark.parametrize(("maximum", "parallelism"), [(7, 2), (300, 5)])
def test_another_maximum_parallelism_on_request(stored: str, backend: str, maximum: int, parallelism: int) -> None:
    version = replace(FIRST, counter_max_parallelism=maximum, counter_parallelism=parallelism)
    plan = check_agreement(version, stored, **{"state.backend.type": backend}, **CHANGE_MAXIMUM)
    assert fates(plan) == KEPT
    counter = plan.operator(COUNTER)
    assert counter.max_parallelism == (128, maximum)
    (warning,) = counter.warnings
    assert f"each of its {parallelism} subtasks reads all" in warning
    assert len(set(counter.bytes_per_subtask)) == 1


def test_more_subtasks_than_the_old_maximum_on_request(tmp_path: Path) -> None:
    path = take_snapshot(replace(FIRST, counter_max_parallelism=3), tmp_path)
    wider = replace(FIRST, counter_parallelism=5)
    assert "reduce its parallelism to at most 3" in check_agreement(wider, path).refusals()[0]
    plan = check_agreement(wider, path, **CHANGE_MAXIMUM)
    assert (fates(plan), plan.operator(COUNTER).max_parallelism) == (KEPT, (3, 128))


def test_the_program_can_be_executed_after_a_rehearsal(stored: str, tmp_path: Path) -> None:
    env = environment(FIRST)
    nodes = list(env.get_stream_graph().nodes)
    holdfast.plan_restore(env, stored)
    assert env.get_stream_graph().nodes == nodes
    assert len(StoredJob(env, tmp_path, stored).rows()) == len(ROWS)


def test_the_table(stored: str) -> None:
    version = replace(FIRST, keyed=with_total(Types.LONG()), counter_parallelism=3, buffer=False)
    plan = rehearse(version, stored, **ALLOW_LOSS)
    reads = plan.operator(COUNTER).bytes_per_subtask
    lines = str(plan).splitlines()
    assert lines[0] == f"Restore of checkpoint 1 ({stored}): possible, {plan.total_bytes:,} B to read"
    assert lines[2].split() == ["operator", "state", "kind", "outcome", "why"]
    assert [line.split()[:4] for line in lines if line.startswith("counter (uid counter)  ")] == [
        ["counter", "(uid", "counter)", "_timers/event_time/user"]
    ]
    assert any(line.split()[-3:] == ["total", "value", "migrated"] for line in lines)
    assert any(line.endswith("dropped   no operator of the program claims it") for line in lines)
    assert (
        f"counter (uid counter): 2 -> 3 subtasks, maximum parallelism 128; to read: "
        f"{', '.join(f'{number:,} B' for number in reads)}" in lines
    )


_totals = st.sampled_from([Types.INT(), Types.LONG(), Types.SHORT()])
_versions = st.builds(
    Version,
    keyed=st.builds(
        lambda total, ttl, rest: (with_total(total, ttl)[0], *rest),
        _totals,
        st.booleans(),
        st.lists(
            st.sampled_from([*default_keyed()[1:], ListStateDescriptor("later", Types.INT())]), max_size=3, unique=True
        ),
    ),
    lists=st.lists(
        st.sampled_from([*default_lists(), ("get_union_list_state", ListStateDescriptor("mine", Types.INT()))]),
        max_size=3,
        unique_by=lambda one: one[1].get_name(),
    ).map(tuple),
    key_type=st.sampled_from([Types.LONG(), Types.LONG(), Types.LONG(), Types.INT()]),
    key_by=st.sampled_from([True, True, True, False]),
    counter_uid=st.sampled_from([COUNTER, COUNTER, COUNTER, "renamed"]),
    counter_parallelism=st.sampled_from([None, 1, 2, 3, 7]),
    counter_max_parallelism=st.sampled_from([None, None, 128, 10, 200]),
    buffer=st.booleans(),
    buffer_parallelism=st.sampled_from([None, 1, 3]),
    chained=st.booleans(),
    extra=st.booleans(),
)


@settings(max_examples=examples(50))
@given(version=_versions, lose=st.booleans(), change=st.booleans(), backend=st.sampled_from(["heap", "lmdb"]))
def test_whatever_changes_the_restore_does_what_the_rehearsal_says(
    stored: str, version: Version, lose: bool, change: bool, backend: str
) -> None:
    allowed = {**(ALLOW_LOSS if lose else {}), **(CHANGE_MAXIMUM if change else {}), "state.backend.type": backend}
    check_agreement(version, stored, **allowed)
