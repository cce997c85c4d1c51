"""Raw state in restores and rehearsals: bytes that nobody but the operator can read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast import plan_restore
from holdfast.common import Types, WatermarkStrategy
from holdfast.datastream import StreamExecutionEnvironment, StreamOperator
from holdfast.errors import RestoreError
from holdfast.state.outcomes import Fate
from tests.graph.restored_jobs import FORMS, Build, StoredJob, environment
from tests.integration.programs import PAIR, Scripted
from tests.runtime.local_job import ListSink


class RawCounts(StreamOperator):
    """Counts rows per key group, and writes the counts itself. ``asks`` False: it has forgotten them."""

    def __init__(self, asks: bool) -> None:
        self.asks = asks
        self.counts: dict[int, int] = {}

    def initialize_state(self, context: Any) -> None:
        if self.asks:
            for provider in context.get_raw_keyed_state_inputs():
                self.counts[provider.get_key_group_id()] = int(provider.get_stream().read())

    def process_element(self, value: Any, ctx: Any) -> Any:
        group = ctx.get_current_key_group()
        self.counts[group] = self.counts.get(group, 0) + 1
        yield value[0], self.counts[group]

    def snapshot_state(self, context: Any) -> None:
        stream = context.get_raw_keyed_operator_state_output()
        for group, count in self.counts.items():
            stream.start_new_key_group(group)
            stream.write(str(count).encode())


def program(asks: bool = True, parallelism: int = 2, maximum: int | None = None) -> Build:
    def build(env: StreamExecutionEnvironment) -> None:
        rows = [(key, 0) for key in range(20)]
        source = env.from_source(
            Scripted([rows, [], rows], ends=False), WatermarkStrategy.no_watermarks(), "rows", PAIR
        )
        keyed = source.uid("rows").key_by(lambda row: row[0], Types.LONG())
        counted = keyed.transform("counts", PAIR, RawCounts(asks)).uid("counts").set_parallelism(parallelism)
        if maximum is not None:
            counted.set_max_parallelism(maximum)
        counted.sink_to(ListSink()).uid("sink")

    return build


@pytest.fixture(params=FORMS)
def stored(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    job = StoredJob(environment(program()), tmp_path)
    job.run()
    path, _ = job.stored(1, request.param)
    job.close()
    return path


def test_raw_state_is_kept_by_the_operator_that_asks_for_it(stored: str, tmp_path: Path) -> None:
    plan = plan_restore(environment(program(parallelism=3)), stored)
    assert plan.operator("counts").state("keyed").fate is Fate.KEPT
    job = StoredJob(environment(program(parallelism=3)), tmp_path, stored)
    acknowledged = job.run()
    job.close()
    assert sum(a.restored_bytes for a in acknowledged) == plan.total_bytes


def test_raw_state_that_nobody_asks_for_is_refused(stored: str, tmp_path: Path) -> None:
    plan = plan_restore(environment(program(asks=False)), stored)
    outcome = plan.operator("counts").state("keyed")
    assert (outcome.kind, outcome.fate) == ("raw", Fate.REFUSED)
    with pytest.raises(RestoreError) as caught:
        StoredJob(environment(program(asks=False)), tmp_path, stored).run()
    assert str(caught.value) == outcome.detail


def test_raw_keyed_state_refuses_another_maximum_parallelism(stored: str, tmp_path: Path) -> None:
    env = environment(program(maximum=64), **{"holdfast.recovery.change-max-parallelism": "true"})
    plan = plan_restore(env, stored)
    assert plan.operator("counts").state("keyed").fate is Fate.REFUSED
    with pytest.raises(
        RestoreError, match=r"'counts' .* cannot change from 128 to 64: it has raw keyed state"
    ) as caught:
        StoredJob(env, tmp_path, stored)
    assert [str(caught.value)] == plan.refusals()


def test_raw_keyed_state_is_left_behind_where_that_is_allowed(stored: str, tmp_path: Path) -> None:
    def build(env: StreamExecutionEnvironment) -> None:
        source = env.from_source(Scripted([[(1, 0)]], ends=False), WatermarkStrategy.no_watermarks(), "rows", PAIR)
        source.uid("rows").map(lambda row: row, PAIR).uid("counts").sink_to(ListSink()).uid("sink")

    assert "keyed state" in plan_restore(environment(build), stored).refusals()[0]
    env = environment(build, **{"execution.state-recovery.ignore-unclaimed-state": "true"})
    plan = plan_restore(env, stored)
    assert plan.possible
    assert plan.operator("counts").state("keyed").fate is Fate.DROPPED
    job = StoredJob(env, tmp_path, stored)
    job.run()
    job.close()
