"""A driver program in a process of its own, to be watched and killed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from holdfast.testing.chaos.processes import (
    Process,
    descendants,
    die_with_parent,
    java_processes,
    kill_all,
    kill_tree,
    python_workers,
    wait_until,
)


class DriverProgram:
    """Runs ``python script arguments`` with its output in a file. As a context manager it leaves no process behind.

    Output is unbuffered, so that a printed line is seen while the program runs.
    """

    def __init__(
        self,
        script: str | os.PathLike[str],
        arguments: Sequence[str] = (),
        output: str | os.PathLike[str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._script = Path(script)
        self._arguments = list(arguments)
        self._output = Path(output) if output is not None else self._script.with_suffix(".log")
        self._environment = dict(environment or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._seen: dict[int, Process] = {}

    def __enter__(self) -> DriverProgram:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> DriverProgram:
        environment = {
            **os.environ,
            "PYTHONUNBUFFERED": "1",
            "PYSPARK_PYTHON": sys.executable,
            **self._environment,
        }
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, str(self._script), *self._arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                preexec_fn=die_with_parent,
            )
        return self

    @property
    def pid(self) -> int:
        return self._running.pid

    @property
    def output(self) -> str:
        return self._output.read_text(errors="replace")

    def workers(self) -> list[Process]:
        """Python workers below this driver (local mode)."""
        return python_workers(self.pid)

    @property
    def code(self) -> int | None:
        """The exit code, negative when a signal ended it; None while it runs."""
        return self._running.poll()

    def check_running(self) -> None:
        """Fails when the program has ended."""
        ended = self._running.poll()
        if ended is not None:
            raise AssertionError(f"{self._script} ended with {ended}:\n{self.output}")

    def wait_for_line(self, pattern: str, timeout: float = 60.0) -> re.Match[str]:
        """The first match of a regular expression in the output; fails at once when the program ended without it."""
        expression = re.compile(pattern, re.MULTILINE)

        def look() -> re.Match[str] | None:
            ended = self._running.poll()
            found = expression.search(self.output)
            if found is None and ended is not None:
                raise AssertionError(f"{self._script} ended with {ended} before it printed {pattern!r}:\n{self.output}")
            return found

        found = wait_until(look, timeout, f"{pattern!r} in {self._output}")
        self._remember()
        return found

    def wait_for_file(self, path: str | os.PathLike[str], timeout: float = 60.0) -> Path:
        """The path, once it exists; fails at once when the program ended without it."""
        marker = Path(path)

        def look() -> Path | None:
            ended = self._running.poll()
            if marker.exists():
                return marker
            if ended is not None:
                raise AssertionError(f"{self._script} ended with {ended} before {marker} existed:\n{self.output}")
            return None

        found = wait_until(look, timeout, f"file {marker}")
        self._remember()
        return found

    def wait(self, timeout: float = 120.0) -> int:
        """The exit code; negative when a signal ended it."""
        self._remember()
        return self._running.wait(timeout)

    def kill(self) -> None:
        """SIGKILL the driver, its JVM and its workers, as when the host goes down."""
        kill_tree(self.pid)
        self._running.wait(20)

    def kill_python(self) -> None:
        """SIGKILL the Python process alone. Its JVM lives until it notices that its standard input is closed."""
        self._remember()
        self._running.kill()
        self._running.wait(20)

    def kill_jvm(self) -> None:
        """SIGKILL the JVM below, and leave the Python process to find out."""
        kill_all(java_processes(self.pid)[:1])

    def close(self) -> None:
        """End what is left of the program, also a JVM that outlived its Python process."""
        if self._process is None:
            return
        self._remember()
        if self._process.poll() is None:
            kill_tree(self._process.pid)
            self._process.wait(20)
        kill_all(process for process in self._seen.values() if process.alive)

    def _remember(self) -> None:
        # Once the parent is dead its children are nobody's: they are looked up while it lives.
        for process in descendants(self.pid):
            self._seen[process.pid] = process

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError(f"{self._script} was not started")
        return self._process
