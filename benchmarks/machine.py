"""Where and with what the figures were taken."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.environments import PROJECT_ENVIRONMENT, EnvironmentFailed, versions

_PACKAGES = ("holdfast", "pyspark", "pyarrow", "pandas", "numpy", "lmdb", "rocksdict", "msgspec", "protobuf")


def describe() -> dict[str, Any]:
    return {
        "cpu": _field("/proc/cpuinfo", "model name") or platform.processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / (1 << 30):.0f} GB",
        "load": round(os.getloadavg()[0], 2),
        "system": platform.system(),
        "python": platform.python_version(),
        "java": _java(),
        "commit": _output(["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]),
        "packages": {name: version for name in _PACKAGES if (version := _version(name))},
    }


def environments(names: Iterable[str]) -> dict[str, Any]:
    """Versions of peers that have environments of their own; what is wrong with one that cannot be made."""
    found: dict[str, Any] = {}
    for name in sorted(set(names) - {PROJECT_ENVIRONMENT}):
        try:
            found[name] = versions(name)
        except EnvironmentFailed as failure:
            found[name] = str(failure).splitlines()[0]
    return found


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    answer = _output([os.path.join(home, "bin", "java") if home else "java", "-version"])
    return answer.splitlines()[0] if answer else None


def _output(command: list[str]) -> str | None:
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def _field(path: str, name: str) -> str | None:
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return None
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), None)
