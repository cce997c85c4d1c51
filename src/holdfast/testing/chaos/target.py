"""The job that faults disturb: a program that is started again when it was killed."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from holdfast.testing.chaos.driver import DriverProgram
from holdfast.testing.chaos.executors import executors_of, workers_of
from holdfast.testing.chaos.processes import Process

#: In the environment of a driver: its number, from 1. A program may come back with another parallelism.
START = "HOLDFAST_CHAOS_START"
_RESTART = re.compile(r"Restarting in \d+ ms \(")


@dataclass(frozen=True)
class Program:
    """``python script arguments``: a driver program that runs one job, under a ``holdfast.job-id`` of its own.

    It is started again after the driver was killed, and has to go on where the last checkpoint is; a driver that was
    killed when its job had already ended gets ``JobEndedError`` then, which is no failure of the program. It ends with
    code 0 when its job has ended. A job that never ends (``ends`` false) is killed when its output is complete.
    ``name`` is shown in results instead of that of the script.
    """

    script: str | os.PathLike[str]
    arguments: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    ends: bool = True
    name: str | None = None


class Target:
    """The running job as faults see it. As a context manager it leaves no process behind.

    The output of the n-th start is in ``driver-<n>.log`` of the directory.
    """

    def __init__(self, program: Program, directory: Path) -> None:
        self._program = program
        self._directory = directory
        self._drivers: list[DriverProgram] = []

    def __enter__(self) -> Target:
        self.start_driver()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for driver in self._drivers:
            driver.close()

    @property
    def driver(self) -> DriverProgram:
        """The one that was started last."""
        return self._drivers[-1]

    @property
    def log(self) -> Path:
        """The log of the driver that was started last."""
        return self._directory / f"driver-{len(self._drivers)}.log"

    @property
    def restarts(self) -> int:
        """Restarts of the driver, and of the job by each driver, as its log tells them at the level WARNING."""
        attempts = sum(len(_RESTART.findall(driver.output)) for driver in self._drivers)
        return len(self._drivers) - 1 + attempts

    def workers(self) -> list[Process]:
        """Python workers, below the driver or its executors on this host."""
        return workers_of(self.driver.pid)

    def executors(self) -> list[Process]:
        """Executor JVMs on this host; none in local mode."""
        return executors_of(self.driver.pid)

    def start_driver(self) -> None:
        """Start the program. What is left of the driver before is not waited for: it has to find out by itself."""
        program, number = self._program, len(self._drivers) + 1
        surroundings = {**program.environment, START: str(number)}
        log = self._directory / f"driver-{number}.log"
        self._drivers.append(DriverProgram(program.script, program.arguments, log, surroundings).start())
