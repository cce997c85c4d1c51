"""What the pages about the code name is there: modules, classes, tests, and the shape of the pages themselves."""

from __future__ import annotations

import ast
import builtins
import re
from functools import cache
from pathlib import Path

import pytest

from tests.docs.blocks import PROJECT, blocks_of

_DOCS = PROJECT / "docs"
_SOURCE = PROJECT / "src" / "holdfast"
_RECORDS = sorted(path for path in (_DOCS / "decisions").glob("*.md") if path.name != "README.md")
#: Pages that name code, and how many modules they name at least.
_PAGES = {
    _DOCS / "flink-map.md": 110,
    _DOCS / "invariants.md": 15,
    _DOCS / "architecture.md": 30,
    **dict.fromkeys(_RECORDS, 1),
}
_MODULE = re.compile(r"`((?!tests/)[a-z_/0-9]+\.py)`")
#: A module, and the names behind it, up to the next one. A line may end between them.
_NAMES = re.compile(r"`(?!tests/)[a-z_/0-9]+\.py`((?:\s`\w+`)*)")
#: In a test of ours, or in a suite that ships.
_TEST = re.compile(r"`((?:tests|src/holdfast/testing/contracts)/[\w/]+\.py)((?:::\w+)*)`")
_NAMED = ast.ClassDef | ast.FunctionDef
_PACKAGE = re.compile(r"`(holdfast(?:\.[a-z_]+)+)`")
#: Classes that prose and diagrams name without their module; Flink's map has those of Flink too.
_CLASS_IN_PROSE = re.compile(r"`([A-Z]\w*[a-z]\w*)`")
_CLASS_IN_DIAGRAM = re.compile(r"\b[A-Z][a-z]+(?:[A-Z][a-z]+)+\b")
_CLASS = re.compile(r"^ *class (\w+)", re.MULTILINE)
_HEADINGS = ["Context", "Decision", "What it costs"]
_TOUR_LINES, _DIAGRAMS = 250, 5
_RECORD_LINES = range(30, 81)


@cache
def _defined(module: Path) -> frozenset[str]:
    """What a module defines, or imports to be found there."""
    names: set[str] = set()
    for node in ast.parse(module.read_text()).body:
        if isinstance(node, _NAMED):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return frozenset(names)


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: page.name)
def test_modules_and_names_exist(page: Path) -> None:
    text = page.read_text()
    modules = _MODULE.findall(text)
    assert len(modules) >= _PAGES[page]
    for module, names in zip(modules, _NAMES.findall(text), strict=True):
        assert (_SOURCE / module).is_file(), f"there is no {module}"
        for name in re.findall(r"`(\w+)`", names):
            assert name in _defined(_SOURCE / module), f"{module} has no {name}"


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: page.name)
def test_packages_and_tests_exist(page: Path) -> None:
    text = page.read_text()
    for dotted in _PACKAGE.findall(text):
        if not _is_setting(dotted):
            path = PROJECT / "src" / dotted.replace(".", "/")
            assert path.is_dir() or path.with_suffix(".py").is_file(), f"there is no {dotted}"
    for file, names in _TEST.findall(text):
        body = ast.parse((PROJECT / file).read_text()).body
        for name in names.split("::")[1:]:
            found = [node for node in body if isinstance(node, _NAMED) and node.name == name]
            assert found, f"{file}{names} is not there"
            body = found[0].body


@pytest.mark.parametrize("page", [page for page in _PAGES if page.name != "flink-map.md"], ids=lambda page: page.name)
def test_classes_exist(page: Path) -> None:
    drawn = "".join(block.code for block in blocks_of(page) if block.language == "mermaid")
    named = {*_CLASS_IN_PROSE.findall(page.read_text()), *_CLASS_IN_DIAGRAM.findall(drawn)}
    assert not named - _classes() - vars(builtins).keys()


@cache
def _classes() -> frozenset[str]:
    return frozenset(name for module in _SOURCE.rglob("*.py") for name in _CLASS.findall(module.read_text()))


def _is_setting(dotted: str) -> bool:
    """Settings of the configuration, and groups of entry points, begin with the name of the package too."""
    known = (_SOURCE / "common" / "options.py", _SOURCE / "common" / "spark_options.py", PROJECT / "pyproject.toml")
    return any(re.search(rf'"{re.escape(dotted)}"', path.read_text()) for path in known)


def test_every_invariant_has_a_test() -> None:
    lines = [line for line in (_DOCS / "invariants.md").read_text().splitlines() if line.startswith("| **")]
    assert len(lines) > 15
    for line in lines:
        assert _TEST.search(line), line


def test_the_tour_is_short_and_drawn() -> None:
    tour = _DOCS / "architecture.md"
    assert len(tour.read_text().splitlines()) <= _TOUR_LINES
    diagrams = [block for block in blocks_of(tour) if block.language == "mermaid"]
    assert len(diagrams) == _DIAGRAMS
    assert {block.code.split()[0] for block in diagrams} == {"flowchart", "sequenceDiagram"}


@pytest.mark.parametrize("record", _RECORDS, ids=lambda record: record.name)
def test_records_have_one_form(record: Path) -> None:
    lines = record.read_text().splitlines()
    assert lines[0].startswith("# ")
    assert [line.removeprefix("## ") for line in lines if line.startswith("## ")] == _HEADINGS
    assert len(lines) in _RECORD_LINES


def test_every_record_is_in_the_index_and_linked() -> None:
    index = (_DOCS / "decisions" / "README.md").read_text()
    linked = re.findall(r"\]\(([\w-]+\.md)\)", index)
    assert sorted(linked) == sorted(record.name for record in _RECORDS)
    assert "(decisions/README.md)" in (_DOCS / "README.md").read_text()
