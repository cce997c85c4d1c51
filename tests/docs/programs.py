"""Programs of the documentation, run as their readers would run them, without starting Spark for each."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from holdfast.testing.chaos.processes import die_with_parent, kill_tree
from tests.kit.driver import PROJECT

_HOST = Path(__file__).with_name("program_host.py")
#: Between the moment that a program's stacks are written and that of its end.
_LAST_WORDS = 3.0


@dataclass(frozen=True)
class Done:
    """A program that ended; the code is None where it had to be killed."""

    code: int | None
    stdout: str
    stderr: str


class ProgramHost:
    """One process for many programs. A program that does not end, or leaves a job behind, takes it along, and the next
    one gets a new one."""

    def __init__(self, directory: Path, environment: Mapping[str, str] | None = None) -> None:
        self._directory = directory
        self._environment = dict(environment or {})
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> ProgramHost:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def run(self, code: str, directory: Path, arguments: Sequence[str] = (), seconds: float = 120.0) -> Done:
        """Run a program in a new, empty folder of ``directory``."""
        program, own = directory / "program.py", directory / "empty"
        program.write_text(code)
        own.mkdir()
        order = {"program": str(program), "arguments": arguments, "directory": str(own), "seconds": seconds}
        return Done(self._order(order, seconds + _LAST_WORDS), _read(directory / "stdout"), _read(directory / "stderr"))

    def close(self) -> None:
        if self._process is not None:
            kill_tree(self._process.pid)
            self._process.wait(20)
            self._process = None

    def _order(self, order: dict[str, object], seconds: float) -> int | None:
        host = self._process = self._process or self._start()
        assert host.stdin is not None and host.stdout is not None
        host.stdin.write(json.dumps(order) + "\n")
        host.stdin.flush()
        with selectors.DefaultSelector() as selector:
            selector.register(host.stdout, selectors.EVENT_READ)
            line = host.stdout.readline() if selector.select(seconds) else ""
        answer: dict[str, Any] = json.loads(line) if line else {"code": None, "last": True}
        if answer["last"]:
            self.close()
        code: int | None = answer["code"]
        return code

    def _start(self) -> subprocess.Popen[str]:
        environment = {
            **os.environ,
            "PYTHONPATH": str(PROJECT / "src"),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            **self._environment,
        }
        return subprocess.Popen(
            [sys.executable, str(_HOST)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=self._directory,
            env=environment,
            preexec_fn=die_with_parent,
        )


def _read(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""
