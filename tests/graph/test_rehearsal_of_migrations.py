"""A rehearsal foresees migrations, and what they are refused for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast import plan_restore
from holdfast.common import Types, WatermarkStrategy
from holdfast.common.watermark_strategy import TimestampAssigner
from holdfast.datastream import StreamExecutionEnvironment, StreamOperator
from holdfast.datastream.state import ListStateDescriptor, ValueStateDescriptor
from holdfast.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows
from holdfast.errors import StateMigrationError
from holdfast.state.outcomes import Fate
from tests.graph.evolving_program import COUNTER, Counter, Version
from tests.graph.restored_jobs import CHECKPOINT, FORMS, Build, StoredJob, environment
from tests.integration.programs import PAIR, Scripted
from tests.runtime.local_job import ListSink

BUFFER = "buffer"


@pytest.fixture(params=FORMS)
def stored(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    job = StoredJob(environment(Version()), tmp_path)
    job.run()
    path, _ = job.stored(1, request.param)
    job.close()
    return path


def migrated() -> Version:
    """Another form for every kind of state."""
    total = ValueStateDescriptor("sum", Types.LONG()).renamed_from("total").migrate_from(0, lambda value: value * 10)
    seen = ListStateDescriptor("elements", Types.LONG()).renamed_from("seen")
    mine = ListStateDescriptor("mine", Types.STRING()).migrate_from(0, str).migrate_from(1, str.upper)
    return Version(keyed=(total, seen), lists=(("get_list_state", mine),))


def test_migrations_are_foreseen(stored: str, tmp_path: Path) -> None:
    plan = plan_restore(environment(migrated()), stored)
    assert plan.possible, str(plan)
    told = {one.state: (one.fate, one.detail) for one in plan.operator(COUNTER).states}
    assert told["sum"] == (Fate.MIGRATED, "was 'total'; by its functions, from version 0 to 1")
    assert told["elements"] == (Fate.KEPT, "was 'seen'")
    assert told["places"][0] is Fate.KEPT and "total" not in told and "seen" not in told
    mine = plan.operator(BUFFER).state("mine")
    assert (mine.fate, mine.detail) == (Fate.MIGRATED, "by its functions, from version 0 to 2")
    job = StoredJob(environment(migrated()), tmp_path, stored)
    acknowledged = job.run()
    assert {one.state for a in acknowledged for one in a.migrations} == {"sum"}
    job.close()


def test_a_missing_step_is_foreseen(stored: str) -> None:
    total = ValueStateDescriptor("total", Types.INT()).migrate_from(1, lambda value: value)
    plan = plan_restore(environment(Version(keyed=(total,))), stored)
    assert not plan.possible
    assert "Add descriptor.migrate_from(0, function)" in plan.operator(COUNTER).state("total").detail


def with_text_keys(parallelism: int = 2) -> Build:
    def build(env: StreamExecutionEnvironment) -> None:
        source = env.from_source(Scripted([[], [], []], ends=False), WatermarkStrategy.no_watermarks(), "rows", PAIR)
        keyed = source.uid("source").key_by(lambda row: f"key {row[0]}", Types.STRING())
        counted = keyed.migrate_key_from(0, lambda key: f"key {key}").process(Counter(Version().keyed), PAIR)
        counted.name(COUNTER).uid(COUNTER).set_parallelism(parallelism).sink_to(ListSink()).uid("sink")

    return build


@pytest.mark.parametrize("parallelism", [2, 3])
def test_a_change_of_keys_is_foreseen_with_what_is_read(stored: str, tmp_path: Path, parallelism: int) -> None:
    given = {"execution.state-recovery.ignore-unclaimed-state": "true"}
    env = environment(with_text_keys(parallelism), **given)
    plan = plan_restore(env, stored)
    assert plan.possible, str(plan)
    operator = plan.operator(COUNTER)
    assert {one.fate for one in operator.states} == {Fate.MIGRATED}
    assert f"each of {parallelism} subtasks reads all" in operator.state("total").detail
    assert len(set(operator.bytes_per_subtask)) == 1
    job = StoredJob(environment(with_text_keys(parallelism), **given), tmp_path, stored)
    acknowledged = job.run()
    assert sum(a.restored_bytes for a in acknowledged) == plan.total_bytes
    job.close()


class First(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[1])


def windows(assigner: Any) -> Build:
    def build(env: StreamExecutionEnvironment) -> None:
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(First())
        rows = env.from_source(Scripted([[(1, 1), (2, 5)], [], []], ends=False), strategy, "rows", PAIR).uid("rows")
        timed = rows.assign_timestamps_and_watermarks(strategy).uid("timed")
        summed = timed.key_by(lambda row: row[0], Types.LONG()).window(assigner)
        summed.reduce(lambda a, b: (a[0], a[1] + b[1])).uid("windows").sink_to(ListSink()).uid("sink")

    return build


TUMBLING, SESSIONS = TumblingEventTimeWindows.of(100), EventTimeSessionWindows.with_gap(10)


@pytest.mark.parametrize(("old", "new"), [(TUMBLING, SESSIONS), (SESSIONS, TUMBLING)], ids=["to sessions", "to others"])
def test_windows_that_begin_or_cease_to_merge_are_refused_beforehand(old: Any, new: Any, tmp_path: Path) -> None:
    job = StoredJob(environment(windows(old)), tmp_path)
    job.run()
    path, _ = job.stored(1, CHECKPOINT)
    job.close()
    assert plan_restore(environment(windows(old)), path).possible
    plan = plan_restore(environment(windows(new)), path)
    assert not plan.possible
    assert any("when its state was stored" in reason for reason in plan.refusals())
    again = StoredJob(environment(windows(new)), tmp_path, path)
    with pytest.raises(StateMigrationError, match="when its state was stored"):
        again.run()
    again.close()


class RawBytes(StreamOperator):
    def initialize_state(self, context: Any) -> None:
        list(context.get_raw_keyed_state_inputs())

    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value

    def snapshot_state(self, context: Any) -> None:
        stream = context.get_raw_keyed_operator_state_output()
        for group in stream.get_key_group_list():
            stream.start_new_key_group(group)
            stream.write(b"x")


def raw(version: int) -> Build:
    def build(env: StreamExecutionEnvironment) -> None:
        rows = env.from_source(Scripted([[(1, 1)], []], ends=False), WatermarkStrategy.no_watermarks(), "rows", PAIR)
        keyed = rows.uid("rows").key_by(lambda row: row[0], Types.LONG())
        if version:
            keyed = keyed.migrate_key_from(0, lambda key: key + 1)
        keyed.transform("raw", PAIR, RawBytes()).uid("raw").sink_to(ListSink()).uid("sink")

    return build


def test_keys_of_raw_state_cannot_change(tmp_path: Path) -> None:
    job = StoredJob(environment(raw(0)), tmp_path)
    job.run()
    path, _ = job.stored(1, CHECKPOINT)
    job.close()
    plan = plan_restore(environment(raw(1)), path)
    assert not plan.possible and "raw keyed state" in plan.refusals()[0]
    again = StoredJob(environment(raw(1)), tmp_path, path)
    with pytest.raises(StateMigrationError, match="raw keyed state"):
        again.run()
    again.close()
