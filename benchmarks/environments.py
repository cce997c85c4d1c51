"""Virtual environments of peers, made on first use and kept in the project's cache."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

#: Everything that benchmarks keep between runs; git ignores it.
CACHE = Path(__file__).parent / ".cache"
#: The environment that runs the benchmarks: Spark's own APIs are measured on the very Spark that Holdfast runs on.
PROJECT_ENVIRONMENT = "project"

#: What is installed from PyPI; versions of the peers are fixed, so that figures can be repeated.
PACKAGES: dict[str, tuple[str, ...]] = {
    "flink": ("apache-flink==2.3.0",),
    "bytewax": ("bytewax==0.21.1", "pyarrow"),
}
_LAST_LINES = 5


class EnvironmentFailed(Exception):
    """An environment could not be made."""


def python_of(environment: str) -> str:
    """The interpreter of an environment, which is made if need be."""
    if environment == PROJECT_ENVIRONMENT:
        return sys.executable
    directory = CACHE / "environments" / environment
    python, ready = directory / "bin" / "python", directory / ".ready"
    packages = PACKAGES[environment]
    if not ready.exists() or ready.read_text() != json.dumps(packages):
        _checked([sys.executable, "-m", "venv", "--clear", str(directory)])
        _checked([str(python), "-m", "pip", "install", "--quiet", *packages])
        # Written last: an installation that was interrupted is begun anew.
        ready.write_text(json.dumps(packages))
    return str(python)


def versions(environment: str) -> dict[str, str]:
    """The versions of the peer, as it is installed."""
    names = [package.partition("==")[0] for package in PACKAGES.get(environment, ())]
    program = "import json, sys, importlib.metadata as m; print(json.dumps({n: m.version(n) for n in sys.argv[1:]}))"
    done = subprocess.run([python_of(environment), "-c", program, *names], capture_output=True, text=True, check=False)
    return dict(json.loads(done.stdout)) if done.returncode == 0 else {}


def _checked(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        last = "\n".join((done.stdout + done.stderr).splitlines()[-_LAST_LINES:])
        raise EnvironmentFailed(f"{' '.join(command)} ended with {done.returncode}:\n{last}")
