"""Programs give the rows that PyFlink gave when they were recorded (``make parity`` runs both, and records).

Each runs on the engine without Spark, in every mode and parallelism that it was recorded with; a few run on Spark.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from holdfast.testing.in_process import InProcessEngine
from tests.parity import records
from tests.parity.case import Case, Setting
from tests.parity.expected import DIFFERENCES, reason
from tests.parity.runner import OUTSIDE, Runner, load, module_names, programs_of
from tests.parity.runner import PROGRAMS as TEXTS

#: Programs that only Spark can run.
SQL = "tables"
MODULES = [name for name in module_names() if name not in OUTSIDE and name != SQL]
#: On Spark: one program of each kind of plan.
ON_SPARK = {
    "streams.side_outputs": "STREAMING-2",
    "streams.sums": "STREAMING-2",
    "state.merging_states": "BATCH-2",
    "output.printed_rows": "STREAMING-2",
    f"{SQL}.filtered_by_sql": "BATCH-2",
    f"{SQL}.keyed_behind_sql": "STREAMING-2",
}
PROGRAMS = [f"{module}.{name}" for module in MODULES for name in records.read(module)]

_loaded = cache(lambda module: load(module, "holdfast"))


@contextmanager
def stdout_as_text() -> Iterator[Callable[[], str]]:
    with redirect_stdout(io.StringIO()) as text:
        yield text.getvalue


def differences(name: str, settings: Iterable[str], directory: Path) -> dict[str, str]:
    """What a program gives instead of the recorded lines, by setting."""
    module, _, own_name = name.partition(".")
    local = {"holdfast.state.local-dir": str(directory / "local"), "holdfast.epoch.idle-wait": "1 ms"}
    runner = Runner("holdfast", stdout_as_text, local)
    recorded = records.read(module)[own_name]
    different = {}
    for setting in settings:
        found = outcome(runner, module, own_name, Setting.parse(setting))
        if found != recorded[setting]:
            different[setting] = f"gives {found}, and PyFlink {recorded[setting]}"
    return different


def outcome(runner: Runner, module: str, name: str, setting: Setting) -> list[str]:
    try:
        program: Any = programs_of(_loaded(module))[name]
        case: Case = program.case
        return case.compared(runner.lines(program, setting), setting)
    except Exception as error:
        return [f"{type(error).__name__}: {error}"]


def judge(name: str, different: Mapping[str, str]) -> None:
    """A program gives the same, or is expected to differ: not the one in place of the other."""
    why = reason(name)
    text = "\n".join(f"{setting} {difference}" for setting, difference in different.items())
    if why is not None and different:
        pytest.xfail(f"{why}\n{text}")
    assert not different, text
    assert why is None, f"{name} gives the rows of PyFlink: it must leave tests/parity/expected.py"


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_the_rows_of_pyflink(in_process: InProcessEngine, tmp_path: Path, name: str) -> None:
    different = differences(name, records.read(name.partition(".")[0])[name.partition(".")[2]], tmp_path)
    judge(name, different)


def test_programs_that_differ_are_there() -> None:
    texts = {module: (TEXTS / f"{module}.py").read_text() for module in module_names()}
    known = [f"{module}.{name}" for module, text in texts.items() for name in re.findall(r"^def (\w+)\(", text, re.M)]
    unknown = [pattern for pattern in DIFFERENCES if not any(fnmatchcase(name, pattern) for name in known)]
    assert not unknown


@pytest.mark.slow
@pytest.mark.parametrize("name", ON_SPARK)
def test_a_program_gives_them_on_spark(spark: Any, tmp_path: Path, name: str) -> None:
    judge(name, differences(name, [ON_SPARK[name]], tmp_path))
