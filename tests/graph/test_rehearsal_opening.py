"""Which functions a rehearsal opens, and what it says where that fails."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast import plan_restore
from holdfast.datastream import Checkpointed, MapFunction, RuntimeContext, StreamExecutionEnvironment
from holdfast.errors import RestoreError
from holdfast.state.outcomes import Fate
from tests.graph.evolving_program import BUFFER, COUNTER, Version
from tests.graph.restored_jobs import FORMS, StoredJob, environment
from tests.runtime.local_job import ListSink

FIRST = Version()


@pytest.fixture(params=FORMS)
def stored(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    job = StoredJob(environment(FIRST), tmp_path)
    job.run()
    path, _ = job.stored(1, request.param)
    job.close()
    return path


def test_what_open_cannot_say_here_is_not_known(stored: str) -> None:
    plan = plan_restore(environment(replace(FIRST, broken=True)), stored)
    counter = plan.operator(COUNTER)
    assert counter.state("total").fate is Fate.KEPT, "declared before open() failed"
    assert counter.state("seen").fate is Fate.UNKNOWN
    assert counter.state("seen").detail == (
        "declared at run time: open() failed here (FunctionError: operator 'counter' (uid counter), subtask 1/2: "
        "open() raised ConnectionError: no route to the database)"
    )
    assert plan.operator(BUFFER).state("mine").fate is Fate.KEPT


def test_functions_are_left_alone_on_request(stored: str) -> None:
    plan = plan_restore(environment(replace(FIRST, broken=True)), Path(stored), open_functions=False)
    assert plan.possible
    told = {(operator.name, one.state): one.fate for operator in plan.operators for one in operator.states}
    assert told[COUNTER, "_timers/event_time/user"] is Fate.KEPT, "the operator declares it, not the function"
    assert told[("rows", "_positions")] is Fate.KEPT
    assert {fate for (_, name), fate in told.items() if name[0] != "_"} == {Fate.UNKNOWN}


class Unreachable(MapFunction):
    """A function whose connection is to be made on executors only."""

    def open(self, runtime_context: RuntimeContext) -> None:
        raise ConnectionError("no route to the database")

    def map(self, value: Any) -> Any:
        return value


def test_functions_that_can_declare_nothing_in_open_are_not_opened(stored: str) -> None:
    def build(env: StreamExecutionEnvironment) -> None:
        FIRST(env)
        env.from_collection([1]).uid("other source").map(Unreachable()).uid("other").sink_to(ListSink()).uid(
            "other sink"
        )

    plan = plan_restore(environment(build), stored)
    assert plan.possible
    assert {one.fate for operator in plan.operators[:3] for one in operator.states} == {Fate.KEPT}
    assert plan.operator("other").states == ()


class OneValue(MapFunction, Checkpointed):
    checkpointed_type = int

    def snapshot_state(self, checkpoint_id: int, checkpoint_timestamp: int) -> Any:
        return 7

    def restore_state(self, state: Any) -> None:
        assert state == 7

    def map(self, value: Any) -> Any:
        return value


def test_what_a_function_refuses_is_refused(tmp_path: Path) -> None:
    def build(env: StreamExecutionEnvironment) -> None:
        env.from_collection([1]).uid("source").rebalance().map(OneValue()).uid("one").sink_to(ListSink()).uid("sink")

    job = StoredJob(environment(build, 2), tmp_path)
    path, _ = job.checkpoint(1)
    job.close()
    assert plan_restore(environment(build, 2), path).possible
    plan = plan_restore(environment(build, 3), path)
    with pytest.raises(RestoreError, match="its Checkpointed state was written with parallelism 2") as caught:
        StoredJob(environment(build, 3), tmp_path, path).run()
    assert plan.operator("one").state("_default_").fate is Fate.REFUSED
    assert plan.refusals() == [plan.operator("one").refusal] == [str(caught.value)]
