"""A job on Spark that goes on with other numbers of subtasks and key groups, as its rehearsal says."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.checkpoint.storage import open_snapshot
from holdfast.common import WatermarkStrategy
from holdfast.datastream import FlatMapFunction, RuntimeContext, StreamExecutionEnvironment
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.datastream.state import ValueStateDescriptor
from holdfast.state.handles import SnapshotKind
from holdfast.state.outcomes import Fate
from tests.integration.programs import PAIR, Scripted, environment, published

pytestmark = pytest.mark.usefixtures("spark")

KEYS = 200
ROWS = [(key, 0) for key in range(KEYS)]


class Places(FlatMapFunction):
    """(key, place of the row among those of its key)."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.place = runtime_context.get_state(ValueStateDescriptor("place", "bigint"))

    def flat_map(self, value: tuple[int, int]) -> Iterable[tuple[int, int]]:
        self.place.update((self.place.value() or 0) + 1)
        yield value[0], self.place.value()


class Stages:
    """Runs of one job, each from the last checkpoint of the run before."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.rounds = 0

    def program(self, counter: dict[str, int], **settings: Any) -> StreamExecutionEnvironment:
        env = environment(
            **{
                "holdfast.job-id": "stages",
                "execution.checkpointing.interval": "10 ms",
                "execution.checkpointing.dir": str(self.directory / "checkpoints"),
                "execution.checkpointing.data-inline-threshold": "0",
                "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
                "holdfast.epoch.idle-wait": "50 ms",
                **settings,
            }
        )
        rows = env.from_source(
            Scripted([ROWS] * (self.rounds + 1), ends=False), WatermarkStrategy.no_watermarks(), "rows", PAIR
        ).uid("rows")
        places = rows.key_by(lambda row: row[0]).flat_map(Places(), PAIR).uid("places")
        places.set_parallelism(counter["parallelism"])
        if "maximum" in counter:
            places.set_max_parallelism(counter["maximum"])
        places.sink_to(FileSink.json(str(self.directory / "out"))).uid("out")
        return env

    def checkpoint(self) -> Path:
        (newest,) = (self.directory / "checkpoints" / "stages").glob("chk-*")
        return newest

    def run(self, env: StreamExecutionEnvironment) -> Any:
        """One more round of rows, then cancel; the history of the run."""
        client = env.execute_async("stages")
        self.rounds += 1
        deadline = time.monotonic() + 90
        while len(published(self.directory / "out")) < self.rounds * KEYS and time.monotonic() < deadline:
            assert client.get_job_status().result().name not in ("FAILED", "FINISHED")
            time.sleep(0.1)
        client.cancel().result()
        assert published(self.directory / "out") == sorted((k, p + 1) for k in range(KEYS) for p in range(self.rounds))
        return client.get_history()


@pytest.mark.slow
def test_subtasks_and_key_groups_change_as_rehearsed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    stages = Stages(tmp_path)
    stages.run(stages.program({"parallelism": 2}))

    first = stages.checkpoint()
    change = {"holdfast.recovery.change-max-parallelism": "true"}
    env = stages.program({"parallelism": 3, "maximum": 50}, **change)
    plan = holdfast.plan_restore(env, first)
    assert plan.operator("places").state("place").fate is Fate.KEPT
    assert plan.operator("places").max_parallelism == (128, 50)
    with caplog.at_level(logging.WARNING, logger="holdfast"):
        history = stages.run(env)
    assert history.restored_bytes == plan.total_bytes > 0
    assert "each of its 3 subtasks reads all" in caplog.text

    second, _ = open_snapshot(str(stages.checkpoint()))
    keyed = [s.keyed for record in second.operators for s in record.subtasks if s.keyed is not None]
    assert [one.files[0].kind for one in keyed] == [SnapshotKind.FULL] * 3
    number = int(first.name.removeprefix("chk-"))
    assert all(file.checkpoint_id > number for one in keyed for file in one.files)

    env = stages.program({"parallelism": 1, "maximum": 50})
    plan = holdfast.plan_restore(env, stages.checkpoint())
    assert stages.run(env).restored_bytes == plan.total_bytes > 0
