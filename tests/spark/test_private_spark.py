"""What reaches behind Spark's public API is in one folder."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import holdfast

SOURCES = Path(holdfast.__file__).parent
INTERNALS = SOURCES / "spark" / "internals"
#: Looks for processes by their names.
PROCESSES = SOURCES / "testing" / "chaos" / "processes.py"

ATTRIBUTES = {"_jvm", "_jdf", "_jsc", "_jsparkSession", "_instantiatedSession", "_sc"}
MODULES = ("py4j", "pyspark.daemon", "pyspark.worker")


def reaches(tree: ast.AST) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in ATTRIBUTES:
            found.add(node.attr)
        elif isinstance(node, ast.ImportFrom):
            found |= {name for name in MODULES if f"{node.module}.".startswith(f"{name}.")}
            found |= {name for name in MODULES for alias in node.names if f"{node.module}.{alias.name}" == name}
        elif isinstance(node, ast.Import):
            found |= {name for name in MODULES for alias in node.names if f"{alias.name}.".startswith(f"{name}.")}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in (*ATTRIBUTES, *MODULES):
            found.add(node.value)
    return found


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("frame._jdf.queryExecution()", {"_jdf"}),
        ("getattr(context, '_jsc')", {"_jsc"}),
        ("from py4j.protocol import Py4JError", {"py4j"}),
        ("import pyspark.worker", {"pyspark.worker"}),
        ("from pyspark import daemon", {"pyspark.daemon"}),
        ("import pyspark.sql", set()),
    ],
)
def test_it_is_found(code: str, found: set[str]) -> None:
    assert reaches(ast.parse(code)) == found


def test_nothing_outside_the_folder_reaches_behind_the_public_api() -> None:
    outside = [path for path in SOURCES.rglob("*.py") if INTERNALS not in path.parents and path != PROCESSES]
    found = {path.relative_to(SOURCES): reaches(ast.parse(path.read_text())) for path in outside}
    assert {path: names for path, names in found.items() if names} == {}
    assert any(reaches(ast.parse(path.read_text())) for path in INTERNALS.glob("*.py"))
