"""A driver program of the tests: it imports what they import, and stays on loopback."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from holdfast.testing import chaos
from holdfast.testing.chaos.driver import DriverProgram as AnyDriverProgram

PROJECT = Path(__file__).resolve().parents[2]


def python_path() -> str:
    """What a program, or an executor's Python, needs to import Holdfast and the tests."""
    return os.pathsep.join([str(PROJECT / "src"), str(PROJECT)])


_ENVIRONMENT = {"PYTHONPATH": python_path(), "SPARK_LOCAL_IP": "127.0.0.1"}


class DriverProgram(AnyDriverProgram):
    def __init__(
        self,
        script: str | os.PathLike[str],
        arguments: Sequence[str] = (),
        output: str | os.PathLike[str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(script, arguments, output, {**_ENVIRONMENT, **(environment or {})})


def program(name: str, script: Path, arguments: Sequence[str], directory: Path) -> chaos.Program:
    """For a chaos run. What drivers that are killed leave in temporary directories is left in ``directory``."""
    temporary = directory / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    surroundings = {**_ENVIRONMENT, "TMPDIR": str(temporary), "SPARK_LOCAL_DIRS": str(temporary)}
    return chaos.Program(script, arguments, surroundings, name=name)
