"""The programs of pages that say how to write something pass the suites that the pages name."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from holdfast.datastream import TwoPhaseCommitSink
from holdfast.runtime.batch import Batch
from holdfast.runtime.sink import WrappingSink
from holdfast.state.store import StateBackend
from holdfast.testing.contracts import ExternalSinkContract, SourceContract, StateBackendContract
from tests.docs.blocks import PROJECT, blocks_of
from tests.kit.installed import installed

_PROJECT = """[project]
name = "written"
version = "1.0"

[project.entry-points."holdfast.state_backends"]
files = "written_from.write_a_state_backend:FilesBackend.from_options"
"""
#: Where a program no longer says how something is written, but uses it.
_USE = ("\nstore = FilesBackend", "\nsink = SqliteSink", "\nenv = StreamExecutionEnvironment")


@pytest.fixture(scope="module", autouse=True)
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The first program of each page, as a module of an installed package."""
    project = tmp_path_factory.mktemp("written")
    package = project / "src" / "written_from"
    package.mkdir(parents=True)
    (project / "pyproject.toml").write_text(_PROJECT)
    (package / "__init__.py").touch()
    for page in ("write-a-state-backend", "write-a-sink", "write-a-source"):
        program = next(block for block in blocks_of(PROJECT / f"docs/how-to/{page}.md") if block.language == "python")
        code = min((program.code.partition(use)[0] for use in _USE), key=len)
        (package / f"{page.replace('-', '_')}.py").write_text(code)
    with installed(project, project / "metadata"):
        yield


def page(name: str) -> ModuleType:
    __import__(f"written_from.{name}")
    return sys.modules[f"written_from.{name}"]


class TestFilesBackend(StateBackendContract):
    @pytest.fixture
    def backend(self) -> StateBackend:
        return page("write_a_state_backend").FilesBackend()


class Numbered(WrappingSink):
    """Rows of a word and a number, of numbers."""

    def write(self, transaction: Any, batch: Batch) -> None:
        super().write(transaction, Batch([("n", value) for value in batch.values]))


class TestSqliteSink(ExternalSinkContract):
    outside_from_begin = False
    says_foreign = "Restore with the sink"

    @pytest.fixture
    def sink(self, tmp_path: Path) -> TwoPhaseCommitSink:
        self._sink = page("write_a_sink").SqliteSink(str(tmp_path / "results.db"))
        return Numbered(self._sink)

    def visible(self, tmp_path: Path) -> list[int]:
        with self._sink.connect() as database:
            return [count for (count,) in database.execute("SELECT count FROM results")]


class TestLogSource(SourceContract):
    @pytest.fixture
    def source(self, tmp_path: Path) -> Any:
        return page("write_a_source").LogSource()

    def rows(self, tmp_path: Path) -> list[tuple[str, str]]:
        return [(topic, row) for topic, rows in page("write_a_source").LOG.items() for row in rows]
