"""Broadcast streams in a rehearsal: their states are declared by the program, not by a function."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.common import Types, WatermarkStrategy
from holdfast.datastream import KeyedBroadcastProcessFunction, StreamExecutionEnvironment
from holdfast.datastream.state import MapStateDescriptor
from holdfast.state.outcomes import Fate
from tests.graph.restored_jobs import FORMS, StoredJob, environment
from tests.integration.programs import PAIR, Scripted
from tests.runtime.local_job import ListSink


class Ruled(KeyedBroadcastProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        ctx.get_broadcast_state(self.rules).put(value[0], value[1])

    def __init__(self, rules: MapStateDescriptor) -> None:
        self.rules = rules


def ruled(values: Any) -> Any:
    def build(env: StreamExecutionEnvironment) -> None:
        rules = MapStateDescriptor("rules", Types.LONG(), values)
        source = Scripted([[(1, 1), (2, 2)], []], ends=False)
        given = env.from_source(source, WatermarkStrategy.no_watermarks(), "rules", PAIR).uid("given")
        rows = env.from_source(source, WatermarkStrategy.no_watermarks(), "rows", PAIR).uid("rows")
        keyed = rows.key_by(lambda row: row[0], Types.LONG())
        keyed.connect(given.broadcast(rules)).process(Ruled(rules), PAIR).uid("ruled").sink_to(ListSink()).uid("sink")

    return build


@pytest.mark.parametrize("form", FORMS)
def test_the_state_of_broadcast_streams(tmp_path: Path, form: str) -> None:
    job = StoredJob(environment(ruled(Types.INT())), tmp_path)
    job.run()
    path, _ = job.stored(1, form)
    job.close()
    for values, fate in [(Types.INT(), Fate.KEPT), (Types.LONG(), Fate.MIGRATED), (Types.STRING(), Fate.REFUSED)]:
        outcome = holdfast.plan_restore(environment(ruled(values), 3), path).operator("ruled").state("rules")
        assert (outcome.kind, outcome.fate) == ("broadcast map", fate)
