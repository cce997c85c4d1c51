"""Windows in whole jobs: a checkpoint in every epoch, a failure in the middle, restores with another parallelism."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from holdfast.common import JobClient, Types
from holdfast.datastream import OutputTag
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.datastream.window import (
    CountTrigger,
    GlobalWindows,
    ProcessingTimeSessionWindows,
    PurgingTrigger,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from holdfast.runtime.epoch import EpochSpec
from holdfast.runtime.windowing.by_row import FoldingByRow
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import environment, published
from tests.job.counting import settings
from tests.job.window_jobs import (
    EPOCHS,
    WINDOWS,
    add_short_windows,
    add_windows,
    by_key,
    early,
    expected,
    expected_of_short_windows,
    timed,
)
from tests.testing.window_functions import PAIR, AddPairs, ApplyRows, SumInPlace

ROWS = [row for rows in EPOCHS for row in rows]
SINGLE = Types.TUPLE([Types.LONG()])


def fail_once(in_process: InProcessEngine, epoch: int = 4) -> None:
    def fail(spec: EpochSpec) -> None:
        if (spec.attempt, spec.epoch) == (1, epoch):
            raise OSError("the executor is gone")

    in_process.after_epoch = fail


@pytest.mark.parametrize(
    ("kind", "parallelism"),
    [("process", 1), ("process", 5), ("reduce", 5), ("aggregate", 1), ("aggregate", 2), ("evicting", 2)],
)
@pytest.mark.parametrize("windows", WINDOWS)
def test_windows_are_exact_over_a_failure(
    in_process: InProcessEngine, tmp_path: Path, windows: str, kind: str, parallelism: int
) -> None:
    fail_once(in_process)
    env = environment(**settings(tmp_path)).set_parallelism(parallelism)
    add_windows(env, tmp_path, windows, kind)
    env.execute()
    sums, late = expected(windows)
    assert published(tmp_path / "sums") == sums
    assert published(tmp_path / "late") == late
    assert {attempt for attempt, _ in in_process.epochs} == {1, 2}


@pytest.mark.parametrize(("kind", "parallelism"), [("process", 1), ("process", 2), ("reduce", 2), ("aggregate", 5)])
def test_windows_that_are_never_in_the_state_are_exact_over_a_failure(
    in_process: InProcessEngine, tmp_path: Path, kind: str, parallelism: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed: list[Any] = []
    fire = FoldingByRow.fire_passing
    monkeypatch.setattr(FoldingByRow, "fire_passing", lambda self, window: passed.append(window) or fire(self, window))
    fail_once(in_process, epoch=3)
    env = environment(**settings(tmp_path)).set_parallelism(parallelism)
    add_short_windows(env, tmp_path, kind)
    env.execute()
    sums, late = expected_of_short_windows()
    assert published(tmp_path / "short-sums") == sums
    assert published(tmp_path / "short-late") == late
    assert passed and len(passed) < len(sums)
    assert {attempt for attempt, _ in in_process.epochs} == {1, 2}


def run_until(tmp_path: Path, client: JobClient, epochs: int) -> str:
    """Stop behind so many epochs; the savepoint."""
    while len(client.get_history().epochs) < epochs and client.is_running():
        time.sleep(0.002)
    path = client.stop_with_savepoint(False).result(30)
    client.get_job_execution_result().result(30)
    return str(path)


@pytest.mark.parametrize(("before", "after"), [(2, 5), (5, 2), (1, 5)])
@pytest.mark.parametrize("windows", WINDOWS)
def test_windows_late_rows_and_timers_over_a_restore_with_another_parallelism(
    in_process: InProcessEngine, tmp_path: Path, windows: str, before: int, after: int
) -> None:
    changes = {
        "execution.checkpointing.savepoint-dir": str(tmp_path / "savepoints"),
        "pipeline.max-parallelism": "16",
        # The type of the accumulators is left open.
        "holdfast.state.allow-pickle": "true",
    }
    kind = "aggregate" if before == 2 else "process"
    env = environment(**settings(tmp_path, **changes)).set_parallelism(before)
    add_windows(env, tmp_path, windows, kind, ends=False)
    path = run_until(tmp_path, env.execute_async("before"), epochs=4)
    fail_once(in_process, epoch=6)
    env = environment(**settings(tmp_path, **changes, **{"execution.state-recovery.path": path}))
    add_windows(env.set_parallelism(after), tmp_path, windows, kind)
    env.execute("after")
    sums, late = expected(windows)
    assert published(tmp_path / "sums") == sums
    assert published(tmp_path / "late") == late


@pytest.mark.parametrize("parallelism", [1, 2, 5])
def test_early_firing_gives_every_row_once(in_process: InProcessEngine, tmp_path: Path, parallelism: int) -> None:
    fail_once(in_process)
    env = environment(**settings(tmp_path)).set_parallelism(parallelism)
    in_time = [sorted(rows, key=lambda row: row[2]) for rows in [ROWS]]
    early(by_key(timed(env, in_time, ends=True))).reduce(AddPairs()).sink_to(FileSink.json(str(tmp_path / "sums")))
    env.execute()
    totals: Counter[str] = Counter()
    for key, value in published(tmp_path / "sums"):
        totals[key] += value
    wanted: Counter[str] = Counter()
    for key, value, _ in ROWS:
        wanted[key] += value
    assert totals == wanted


@pytest.mark.parametrize("parallelism", [1, 2, 5])
def test_count_windows_and_windows_of_all_rows(in_process: InProcessEngine, tmp_path: Path, parallelism: int) -> None:
    fail_once(in_process)
    env = environment(**settings(tmp_path)).set_parallelism(parallelism)
    rows = timed(env, EPOCHS, ends=True)
    by_key(rows).count_window(3).reduce(AddPairs()).sink_to(FileSink.json(str(tmp_path / "three")))
    purging = PurgingTrigger.of(CountTrigger.of(5))
    everything = rows.window_all(GlobalWindows.create()).trigger(purging).aggregate(SumInPlace())
    everything.map(lambda total: (total,), SINGLE).sink_to(FileSink.json(str(tmp_path / "five")))
    env.execute()
    of_key: dict[str, list[int]] = {}
    for key, value, _ in ROWS:
        of_key.setdefault(key, []).append(value)
    threes = [
        (key, sum(values[n : n + 3])) for key, values in of_key.items() for n in range(0, len(values) // 3 * 3, 3)
    ]
    assert published(tmp_path / "three") == sorted(threes)
    values = [value for _, value, _ in ROWS]
    assert published(tmp_path / "five") == sorted((sum(values[n : n + 5]),) for n in range(0, len(values) // 5 * 5, 5))


@pytest.mark.parametrize(
    "assigner", [TumblingProcessingTimeWindows.of(7_000), ProcessingTimeSessionWindows.with_gap(9_000)]
)
def test_windows_by_the_clock_lose_and_repeat_nothing(
    in_process: InProcessEngine, tmp_path: Path, assigner: Any
) -> None:
    """Every look at the clock is a second: which windows there are depends on the run, what is in them does not."""
    fail_once(in_process)
    env = environment(**settings(tmp_path))
    quadruple = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG(), Types.LONG()])
    sums = by_key(timed(env, EPOCHS, ends=False)).window(assigner).apply(ApplyRows(), quadruple)
    sums.sink_to(FileSink.json(str(tmp_path / "sums")))
    client = env.execute_async("by processing time")
    wanted = sum(value for _, value, _ in ROWS)
    deadline = time.monotonic() + 30
    while sum(row[3] for row in published(tmp_path / "sums")) < wanted and time.monotonic() < deadline:
        time.sleep(0.01)
    client.cancel().result(30)
    assert sum(row[3] for row in published(tmp_path / "sums")) == wanted


def test_a_row_that_nobody_asked_for_aside_is_dropped(in_process: InProcessEngine, tmp_path: Path) -> None:
    env = environment(**settings(tmp_path))
    windows = by_key(timed(env, EPOCHS, ends=True)).window(TumblingEventTimeWindows.of(20))
    sums = windows.side_output_late_data(OutputTag("unheard", PAIR)).reduce(AddPairs())
    sums.sink_to(FileSink.json(str(tmp_path / "sums")))
    env.execute()
    assert 0 < sum(value for _, value in published(tmp_path / "sums")) < sum(value for _, value, _ in ROWS)

