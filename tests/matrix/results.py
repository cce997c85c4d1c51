"""What a run came to, kept in a file of its own, so that a matrix that was interrupted goes on where it was."""

from __future__ import annotations

import hashlib
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from pathlib import Path

import msgspec

from tests.matrix.catalogue import Run
from tests.matrix.environments import PROJECT

#: What a result depends on. The matrix itself is left out: it says what is run, and not how it ends.
_SOURCES = ("src", "tests", "examples", "pyproject.toml", "docs/how-to/first-program.md")
_NOT_SOURCES = ("tests/matrix",)


class Told(msgspec.Struct, frozen=True):
    """A test, and why it is not among those that passed."""

    test: str
    reason: str


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """How the tests of a run ended."""

    version: str
    accelerations: str
    part: str
    #: The patch of Spark that it ran on.
    spark: str
    #: Of the sources that it ran.
    fingerprint: str
    date: str
    seconds: float
    #: Of pytest; None where it was killed because it took too long.
    code: int | None
    passed: int
    failed: list[Told]
    #: Declared not to work with this Spark, tried, and seen to fail.
    expected: list[Told]
    skipped: list[Told]

    @property
    def good(self) -> bool:
        """Skipped tests are as good as none: a part in which nothing passed has shown nothing."""
        return self.code == 0 and not self.failed and self.passed + len(self.expected) > 0


class Results:
    """A folder with a file for each run."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    def path(self, run: Run, suffix: str) -> Path:
        return self._directory / f"{run.name}.{suffix}"

    def get(self, run: Run) -> Result | None:
        """None also where the file is of another version of this tool."""
        try:
            return msgspec.json.decode(self.path(run, "json").read_bytes(), type=Result)
        except (FileNotFoundError, msgspec.DecodeError):
            return None

    def put(self, run: Run, result: Result) -> None:
        draft = self.path(run, "json.draft")
        draft.write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=1))
        draft.replace(self.path(run, "json"))

    def current(self, run: Run, fingerprint: str) -> Result | None:
        """The result of a run on these very sources."""
        found = self.get(run)
        return found if found is not None and found.fingerprint == fingerprint else None

    def open_runs(self, runs: Iterable[Run], fingerprint: str) -> list[Run]:
        """The runs that have no good result on these sources."""
        found = ((run, self.current(run, fingerprint)) for run in runs)
        return [run for run, result in found if result is None or not result.good]


def read_report(path: Path) -> tuple[int, list[Told], list[Told], list[Told]]:
    """Passed, failed, expected and skipped, from pytest's report in JUnit's format."""
    passed, failed, expected, skipped = 0, [], [], []
    for case in ElementTree.parse(path).iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}".lstrip(":")
        bad = case.find("failure") if case.find("failure") is not None else case.find("error")
        left = case.find("skipped")
        if bad is not None:
            failed.append(Told(name, _first_line(bad)))
        elif left is None:
            passed += 1
        else:
            (expected if left.get("type") == "pytest.xfail" else skipped).append(Told(name, _first_line(left)))
    return passed, failed, expected, skipped


def _first_line(element: ElementTree.Element) -> str:
    line = next(iter((element.get("message") or element.text or "").splitlines()), "")
    # The page is for everybody: where this clone lies says nothing to others.
    return line.replace(f"{PROJECT}/", "")


def fingerprint(project: Path = PROJECT) -> str:
    """The fingerprint of everything that a run may read of the project."""
    digest = hashlib.sha256()
    for path in sorted(_source_files(project)):
        name = path.relative_to(project).as_posix()
        digest.update(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def _source_files(project: Path) -> Iterable[Path]:
    left_out = [project / name for name in _NOT_SOURCES]
    for source in (project / name for name in _SOURCES):
        for path in [source] if source.is_file() else source.rglob("*"):
            derived = "__pycache__" in path.parts or any(path.is_relative_to(folder) for folder in left_out)
            if path.is_file() and not derived:
                yield path
