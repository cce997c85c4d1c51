"""What people see of a program that fails in the same way each time: their own lines and their error first."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import pytest

from holdfast.common import Types
from holdfast.datastream import MapFunction
from holdfast.errors import JobExecutionError
from holdfast.runtime.failure_report import TaskTraceback
from tests.integration.programs import PAIR, environment

PROJECT = Path(__file__).resolve().parents[2]
ERROR = "ZeroDivisionError: integer division or modulo by zero"

PROGRAM = """
from holdfast.common import Configuration, Types
from holdfast.datastream import MapFunction, StreamExecutionEnvironment


class Divides(MapFunction):
    def map(self, value):
        return self.share(value)

    def share(self, value):
        return 100 // (value - 7)


env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(2).enable_checkpointing(500)
numbers = env.from_collection(list(range(30)), Types.LONG()).key_by(lambda number: number % 3)
numbers.map(Divides(), Types.LONG()).name("divide").print()
env.execute("dividing")
"""


class Divides(MapFunction):
    def map(self, value: tuple[int, int]) -> int:
        return self.share(value[1])

    def share(self, number: int) -> int:
        return 100 // (number - 7)


@pytest.mark.slow
def test_a_program_on_spark_ends_with_its_own_lines(spark: Any, tmp_path: Path) -> None:
    env = environment(**{"execution.checkpointing.interval": "365 d", "holdfast.state.local-dir": str(tmp_path)})
    env.get_configuration().remove_config("restart-strategy.type")
    rows = env.from_collection([(i % 3, i) for i in range(30)], PAIR).key_by(lambda row: row[0])
    rows.map(Divides(), Types.LONG()).name("divide").print()
    client = env.execute_async("dividing")
    with pytest.raises(JobExecutionError, match="in the same way 3 times") as caught:
        client.get_job_execution_result().result(120)
    assert client.get_history().attempt == 3
    failure = caught.value.__cause__
    assert failure is not None and isinstance(failure.__cause__, TaskTraceback)
    # As Python prints what nobody caught, in spark-submit too.
    printed = "".join(traceback.format_exception(caught.value)).splitlines()
    assert printed[1] == "Traceback (most recent call last):"
    assert __file__ in printed[2] and printed[2].endswith("in map")
    frames = [line.rpartition(", in ")[2] for line in printed[: printed.index(ERROR)] if line.startswith("  File ")]
    assert frames == ["map", "share"]
    assert not any("org.apache" in line or "holdfast-failure" in line for line in printed)
    assert caught.value.trace.rstrip().endswith(ERROR)


@pytest.mark.slow
def test_the_command_line_tells_of_the_program_first(spark: Any, tmp_path: Path) -> None:
    """Nothing is configured: the program makes its own session, and a repeated failure is a line."""
    (tmp_path / "prog.py").write_text(PROGRAM)
    environ = {
        **os.environ,
        "PYTHONPATH": f"{PROJECT / 'src'}",
        "HOLDFAST_JOBS_DIR": str(tmp_path / "jobs"),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    done = subprocess.run(
        [sys.executable, "-m", "holdfast.cli", "run", "-D", "spark.master=local[2]", "prog.py"],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    lines = done.stderr.splitlines()
    line = 1 + PROGRAM.splitlines().index("        return 100 // (value - 7)")
    first = next(number for number, told in enumerate(lines) if told.startswith("Attempt 1 failed"))
    assert lines[first].endswith(f"prog.py, line {line}, in share: {ERROR}")
    assert lines[first + 1] == "Traceback (most recent call last):"
    assert "prog.py" in lines[first + 2] and lines[first + 2].endswith("in map")
    (again,) = (told for told in lines if told.startswith("Attempt 2 failed"))
    assert f"as the one before, 2 times so far: {ERROR}" in again
    last = len(lines) - 1 - lines[::-1].index("Traceback (most recent call last):")
    end = lines[last:]
    assert "prog.py" in end[1] and ERROR in end
    assert end[-1].startswith("Job 'dividing' (") and "failed in attempt 3 and is not restarted" in end[-1]
    assert done.stderr.count("Traceback") == 2
    for hidden in ("holdfast-failure", "holdfast/runtime", "org.apache.spark.api.python", "\tat "):
        assert hidden not in done.stderr
