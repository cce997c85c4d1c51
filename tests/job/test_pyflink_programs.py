"""PyFlink's programs, with the imports changed and nothing else, give the rows that they give there."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from holdfast.datastream.connectors.file_system import FileSink
from holdfast.runtime.epoch import EpochSpec
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import environment, published
from tests.job.counting import settings

PROGRAMS = Path(__file__).with_name("pyflink_programs.py")

ROWS = [(n % 3, n) for n in range(12)]
#: What each program gives as a stream, and where it differs as a batch.
STREAMED: dict[str, list[tuple[int, int]]] = {
    "keyed_state": [(0, 1), (1, 2), (2, 3), (0, 7), (1, 8), (2, 9)],
    "side_output": [row for row in ROWS if row[1] % 2 == 0] + [(-1, n) for _, n in ROWS if n % 2],
    "connected": [(100 + key, n) for key, n in ROWS if key < 2],
    "connected_flat_map": [*ROWS, (-1, 0), (-1, 1), (-1, 0), (-1, 1), (-1, 2)],
    "broadcast_state": [row for row in ROWS if row[1] > 6],
    "timers": [(0, 18), (1, 22), (2, 26)],
    "rolling_sum": [(key, sum(m for k, m in ROWS if k == key and m <= n)) for key, n in ROWS],
}
BATCHED = {**STREAMED, "rolling_sum": [(0, 18), (1, 22), (2, 26)]}


@pytest.fixture(scope="module")
def programs() -> ModuleType:
    module = ModuleType("translated_programs")
    exec(compile(PROGRAMS.read_text().replace("pyflink", "holdfast"), PROGRAMS.name, "exec"), module.__dict__)
    return module


@pytest.mark.parametrize("parallelism", [1, 2, 5])
@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
@pytest.mark.parametrize("name", STREAMED)
def test_a_program_gives_its_rows(
    in_process: InProcessEngine, tmp_path: Path, programs: ModuleType, name: str, mode: str, parallelism: int
) -> None:
    """With a checkpoint in every epoch of a stream, and a failure in the middle."""

    def fail(spec: EpochSpec) -> None:
        if (spec.attempt, spec.epoch) == (1, 3):
            raise OSError("the executor is gone")

    in_process.after_epoch = fail
    given = {"holdfast.epoch.max-rows": "4", "execution.runtime-mode": mode}
    env = environment(**settings(tmp_path, **given)).set_parallelism(parallelism)
    getattr(programs, name)(env).sink_to(FileSink.json(str(tmp_path / "out")))
    env.execute(name)
    assert published(tmp_path / "out") == sorted((STREAMED if mode == "STREAMING" else BATCHED)[name])
    assert {attempt for attempt, _ in in_process.epochs} == {1, 2}
