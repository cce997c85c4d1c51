"""Broadcast streams on local Spark: rules beside a keyed stream, and all kinds of state over two rescalings."""

from __future__ import annotations

import copy
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast.common import Types, WatermarkStrategy
from holdfast.datastream.connectors.file_system import FileSink
from tests.integration.programs import PAIR, Scripted, environment, published
from tests.testing.broadcast_functions import FACTORS, REPORT, AllStates, Model, Tagged

pytestmark = pytest.mark.usefixtures("spark")

#: Broadcast elements and rows of every epoch. What was restored is reported before anything changes it.
PARTS: list[list[tuple[list[Any], list[tuple[int, int]]]]] = [
    [
        ([("factor", "a", 1), ("factor", "b", 2)], [(key, key + 1) for key in range(30)]),
        ([("factor", "a", 3)], [(key % 40, key) for key in range(50)]),
    ],
    [([("report",)], []), ([("scale", 2), ("factor", "c", 4)], [(key % 50, 1) for key in range(100)])],
    [([("report",)], []), ([("scale", -1)], [(key, 5) for key in range(60)])],
]


def start(directory: Path, parallelism: int, parts: int) -> Any:
    """The job over the first parts of the script, from the newest checkpoint of the run before if there was one."""
    settings = {
        "execution.checkpointing.interval": "10 ms",
        "execution.checkpointing.dir": str(directory / f"chk-{parts}"),
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        "holdfast.epoch.idle-wait": "50 ms",
        "pipeline.max-parallelism": "128",
    }
    if parts > 1:
        (checkpoint,) = (directory / f"chk-{parts - 1}").glob("*/chk-*")
        settings["execution.state-recovery.path"] = str(checkpoint)
    env = environment(**settings).set_parallelism(parallelism)
    script = [epoch for part in PARTS[:parts] for epoch in part]
    last = parts == len(PARTS)
    rows = env.from_source(Scripted([r for _, r in script], last), WatermarkStrategy.no_watermarks(), "rows")
    elements = env.from_source(Scripted([e for e, _ in script], last), WatermarkStrategy.no_watermarks(), "elements")
    broadcast = elements.uid("elements").broadcast(FACTORS)
    result = rows.uid("rows").key_by(lambda row: row[0], Types.LONG()).connect(broadcast).process(AllStates(), REPORT)
    result.uid("all states").sink_to(FileSink.json(str(directory / f"out-{parts}"))).uid("sink")
    return env.execute_async(f"part {parts}")


def run_part(directory: Path, parallelism: int, parts: int, expected: int) -> list[Any]:
    """Run one part until its rows are published, and stop behind a checkpoint; the last one ends by itself."""
    client = start(directory, parallelism, parts)
    if parts == len(PARTS):
        client.get_job_execution_result().result()
    else:
        deadline = time.monotonic() + 120
        while len(published(directory / f"out-{parts}")) < expected and time.monotonic() < deadline:
            time.sleep(0.1)
        client.cancel().result()
    return published(directory / f"out-{parts}")


@pytest.mark.slow
def test_all_kinds_of_state_over_two_rescalings(tmp_path: Path) -> None:
    model = Model()
    layouts = [(2, []), (3, ["0/2", "1/2"]), (1, ["0/3", "1/3", "2/3"])]
    for number, ((parallelism, union), epochs) in enumerate(zip(layouts, PARTS, strict=True), start=1):
        restored = copy.deepcopy(model)
        expected = sorted(row for elements, rows in epochs for row in model.epoch(elements, rows))
        reports = 0 if number == 1 else 5 * parallelism
        out = run_part(tmp_path, parallelism, number, len(expected) + reports)
        assert [row for row in out if row[0] == "row"] == expected
        if reports:
            restored.audit([row for row in out if row[0] != "row"], parallelism, union)


def test_rules_of_two_channels_beside_rows_without_keys() -> None:
    env = environment(**{"holdfast.epoch.max-rows": "40"})
    rules = env.from_collection([(f"r{n}", n) for n in range(6)], Types.TUPLE([Types.STRING(), Types.LONG()]))
    rules = rules.rebalance().map(lambda rule: rule, Types.TUPLE([Types.STRING(), Types.LONG()]))
    rows = env.from_collection([(n, n) for n in range(20)], PAIR).rebalance()
    out = list(rows.connect(rules.broadcast(FACTORS)).process(Tagged()).execute_and_collect())
    # The rules are dealt out to two subtasks, and come back in the order of the subtasks.
    order = [(f"r{n}", n) for n in (0, 2, 4, 1, 3, 5)]
    assert sorted(row for row, _ in out) == [(n, n) for n in range(20)]
    assert {tuple(seen) for _, seen in out} == {tuple(order)}


def test_rules_from_a_data_frame(spark: Any) -> None:
    env = environment()
    frame = spark.range(0, 8, 1, 4).selectExpr("concat('r', id) AS name", "id AS factor")
    rows = env.from_collection([(n, n) for n in range(10)], PAIR)
    out = list(rows.connect(env.from_data_frame(frame).broadcast(FACTORS)).process(Tagged()).execute_and_collect())
    assert sorted(row for row, _ in out) == [(n, n) for n in range(10)]
    assert {tuple(seen) for _, seen in out} == {tuple((f"r{n}", n) for n in range(8))}
