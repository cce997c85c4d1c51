"""What a source makes of state that is restored under its uid."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.common import Types, WatermarkStrategy
from holdfast.datastream import (
    CheckpointedFunction,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    MapFunction,
    StreamExecutionEnvironment,
)
from holdfast.datastream.state import ListStateDescriptor
from holdfast.errors import HoldfastError
from tests.graph.restored_jobs import FORMS, Build, StoredJob, environment
from tests.integration.programs import Scripted
from tests.runtime.local_job import ListSink


class Lists(MapFunction, CheckpointedFunction):
    """Registers lists by the names of their getters."""

    def __init__(self, lists: dict[str, str], fill: bool) -> None:
        self.lists = lists
        self.fill = fill
        self.found: set[str] = set()

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        store = context.get_operator_state_store()
        self.found = store.get_registered_state_names()
        self.states = [
            getattr(store, getter)(ListStateDescriptor(name, Types.LONG())) for name, getter in self.lists.items()
        ]

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        for state in self.states if self.fill else ():
            state.update([1, 2, 3])

    def map(self, value: Any) -> Any:
        return sorted(self.found)


class Silent(Scripted):
    """Has no positions to tell."""

    def create_reader(self, context: Any) -> Any:
        assert not context.restored
        reader = super().create_reader(context)
        reader.positions = list  # type: ignore[method-assign]  # an empty one
        return reader


def mapped(function: Callable[[], MapFunction], map_uid: str = "map", source_uid: str = "source") -> Build:
    def build(env: StreamExecutionEnvironment) -> None:
        source = Scripted([["a"], [], ["b"], [], ["c"] * 6], ends=False)
        rows = env.from_source(source, WatermarkStrategy.no_watermarks(), "rows").uid(source_uid)
        rows.rebalance().map(function()).uid(map_uid).sink_to(ListSink()).uid("sink")

    return build


def snapshot(build: Build, root: Path, form: str) -> str:
    root.mkdir()
    job = StoredJob(environment(build), root)
    job.run()
    path, _ = job.stored(1, form)
    job.close()
    return path


ALLOW_LOSS = {"execution.state-recovery.ignore-unclaimed-state": "true"}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("fill", [True, False], ids=["elements", "no elements"])
def test_a_source_under_the_uid_of_another_operator_is_refused(tmp_path: Path, form: str, fill: bool) -> None:
    lists = {"mine": "get_list_state"}
    path = snapshot(mapped(lambda: Lists(lists, fill)), tmp_path / "first", form)
    swapped = mapped(lambda: Lists({}, False), map_uid="new", source_uid="map")
    with pytest.raises(HoldfastError, match=r"is a source, and what is restored under its uid .*another uid"):
        StoredJob(environment(swapped, **ALLOW_LOSS), tmp_path, path).run()
    plan = holdfast.plan_restore(environment(swapped, **ALLOW_LOSS), path)
    assert not plan.possible and "is a source" in plan.refusals()[0]


@pytest.mark.parametrize("form", FORMS)
def test_positions_that_are_registered_and_empty_are_positions(tmp_path: Path, form: str) -> None:
    def silent(env: StreamExecutionEnvironment) -> None:
        source = Silent([["a"]], ends=False)
        rows = env.from_source(source, WatermarkStrategy.no_watermarks(), "rows").uid("source")
        rows.map(Lists({}, False)).uid("map").sink_to(ListSink()).uid("sink")

    path = snapshot(silent, tmp_path / "first", form)
    job = StoredJob(environment(silent), tmp_path, path)
    assert job.rows() == [[]], "the reader is made with no positions, and reads"
    job.close()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_every_subtask_hears_of_registered_states(tmp_path: Path, form: str, parallelism: int) -> None:
    lists = {"mine": "get_list_state", "ours": "get_union_list_state"}
    path = snapshot(mapped(lambda: Lists(lists, False)), tmp_path / "first", form)
    # Not asked for by this program: it is kept, and so is the mark that it exists.
    job = StoredJob(environment(mapped(lambda: Lists({}, False)), parallelism), tmp_path, path)
    job.run()
    again, _ = job.stored(2, form)
    job.close()
    last = StoredJob(environment(mapped(lambda: Lists({}, False)), parallelism), tmp_path / "first", again)
    assert last.rows() == [["mine", "ours"]] * 6
    last.close()
