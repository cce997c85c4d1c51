"""What the map for readers of Flink's source, and the page of invariants, name is there."""

from __future__ import annotations

import re

import pytest

from tests.docs.blocks import PROJECT

_SOURCE = PROJECT / "src" / "holdfast"
_MODULE = re.compile(r"`((?!tests/)[a-z_/0-9]+\.py)`")
#: A module, and the names behind it, up to the next one.
_NAMES = re.compile(r"`(?!tests/)[a-z_/0-9]+\.py`((?: `\w+`)*)")
#: In a test of ours, or in a suite that ours share with those of others.
_TEST = re.compile(r"`((?:tests|src/holdfast/testing/contracts)/[\w/]+\.py)(?:::(\w+))?`")


@pytest.mark.parametrize(("page", "least"), [("flink-map.md", 50), ("invariants.md", 15)])
def test_modules_and_names_exist(page: str, least: int) -> None:
    text = (PROJECT / "docs" / page).read_text()
    modules = _MODULE.findall(text)
    assert len(modules) > least
    for module, names in zip(modules, _NAMES.findall(text), strict=True):
        source = (_SOURCE / module).read_text()
        for name in re.findall(r"`(\w+)`", names):
            assert re.search(rf"^(class|def) {name}\b", source, re.MULTILINE), f"{module} has no {name}"


def test_every_invariant_has_a_test() -> None:
    lines = [line for line in (PROJECT / "docs" / "invariants.md").read_text().splitlines() if line.startswith("| **")]
    for line in lines:
        found = _TEST.findall(line)
        assert found, line
        for file, name in found:
            assert f"def {name}" in (PROJECT / file).read_text(), f"{file} has no {name}"
