"""The command line, called as a user calls it, with a jobs directory of its own."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.__main__ import main
from holdfast.server.jobs_directory import JobsDirectory

PROJECT = Path(__file__).resolve().parents[2]


@dataclass
class Ran:
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Cli = Callable[..., Ran]


@pytest.fixture
def jobs_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "jobs"
    monkeypatch.setenv("HOLDFAST_JOBS_DIR", str(directory))
    monkeypatch.setenv("PYTHONPATH", f"{PROJECT / 'src'}{os.pathsep}{PROJECT}")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    return directory


@pytest.fixture
def cli(jobs_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Cli]:
    """Runs a command in this process. Drivers that it started do not outlive the test."""

    def run(*arguments: str, code: int = 0) -> Ran:
        monkeypatch.setattr(sys, "argv", ["holdfast", *arguments])
        capsys.readouterr()
        try:
            main()
            ended = 0
        except SystemExit as end:
            ended = 0 if end.code is None else int(end.code)
        told = capsys.readouterr()
        assert ended == code, told.err or told.out
        return Ran(ended, told.out, told.err)

    yield run
    for record in JobsDirectory(jobs_dir).living():
        if record.process.pid != os.getpid():
            with suppress(ProcessLookupError):
                os.kill(record.process.pid, signal.SIGKILL)


def await_true(ready: Callable[[], Any], seconds: float = 20) -> Any:
    end = time.monotonic() + seconds
    while not (got := ready()):
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)
    return got
