"""Examples on Spark, unchanged: one application, a worker that is killed, and the rows of PyFlink."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.docs.programs import ProgramHost
from tests.job.test_examples import BATCHED, EXAMPLES, STREAMED
from tests.kit.faults import FaultPlan

pytestmark = pytest.mark.slow


def lines_of(directory: Path) -> list[str]:
    files = [path for path in directory.glob("*") if path.is_file()]
    return sorted(line for path in files for line in path.read_text().splitlines())


def test_examples_on_spark(tmp_path: Path) -> None:
    faults = FaultPlan(tmp_path / "faults")
    # Of the first program, which then goes on from its checkpoint.
    faults.add("task.after-commit", "kill", epoch=2, level=1)
    configured = {
        "parallelism.default": "2",
        "holdfast.epoch.max-rows": "2",
        "execution.checkpointing.interval": "10 ms",
        "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.delay": "10 ms",
    }
    runs = [("state_access", "STREAMING"), ("session_window", "STREAMING"), ("broadcast_state", "STREAMING")]
    runs += [("connected_streams", "BATCH")]
    with ProgramHost(tmp_path, {**faults.environment, "HOLDFAST_CONF_DIR": str(tmp_path)}) as host:
        for name, mode in runs:
            (tmp_path / "config.yaml").write_text(yaml.safe_dump({**configured, "execution.runtime-mode": mode}))
            own = tmp_path / name
            own.mkdir()
            done = host.run((EXAMPLES / f"{name}.py").read_text(), own, ["out"])
            assert done.code == 0, f"{name} ended with {done.code}\n{done.stderr[-4000:]}"
            assert lines_of(own / "empty" / "out") == sorted((STREAMED if mode == "STREAMING" else BATCHED)[name])
    assert not faults.not_reached()
