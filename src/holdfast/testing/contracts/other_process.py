"""Programs in processes of their own, which suites start, kill and wait for."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any


def command_of(program: str, argument: Any, directory: Path) -> list[str]:
    """The command that runs a program of Python. It finds ``argument``, which must be picklable, in the file that its
    first argument names.
    """
    pickled = directory / "argument.pickle"
    pickled.write_bytes(pickle.dumps(argument))
    return [sys.executable, "-c", program, str(pickled)]


def environment_of(**more: str) -> dict[str, str]:
    """The environment in which a process finds the modules that this one finds."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), **more}


def run_python(program: str, argument: Any, directory: Path, **environment: str) -> int:
    """Run a program to its end; the exit code, negative for a signal."""
    command = command_of(program, argument, directory)
    return subprocess.run(command, env=environment_of(**environment), check=False).returncode
