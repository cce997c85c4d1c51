"""Imports of PyFlink's Table API say what takes its place."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

from holdfast.errors import UnavailableImportError

QUERIES = r"env\.create_temporary_view\(name, stream\), and env\.sql\(query\)"
#: Imports as programs have them, and what the error names.
IMPORTS = [
    ("from holdfast.table import StreamTableEnvironment", QUERIES),
    ("from holdfast.table import TableEnvironment, EnvironmentSettings", QUERIES),
    ("from holdfast.table import EnvironmentSettings", r"set_runtime_mode"),
    ("from holdfast.table import DataTypes", r"Types of holdfast\.common"),
    ("from holdfast.table import Row", r"import it from holdfast\.common"),
    ("from holdfast.table import Schema, TableDescriptor", r"Types of holdfast\.common"),
    ("from holdfast.table import TableDescriptor", r"env\.from_source"),
    ("from holdfast.table import expressions as expr", r"the text of env\.sql"),
    ("from holdfast.table.expressions import col, lit", r"the text of env\.sql"),
    ("from holdfast.table.types import DataTypes", r"Types of holdfast\.common"),
    ("from holdfast.table.udf import udf", r"spark\.udf\.register"),
    ("from holdfast.table.udf import udaf", r"key_by"),
    ("from holdfast.table.window import Tumble", r"key_by.*window"),
]


@pytest.mark.parametrize(("line", "told"), IMPORTS)
def test_an_import_says_what_takes_its_place(line: str, told: str) -> None:
    with pytest.raises(UnavailableImportError, match=f"is not available: .*{told}.*coming-from-pyflink"):
        exec(line)


def test_modules_are_like_others_for_python() -> None:
    package = importlib.import_module("holdfast.table")
    for found in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"holdfast.table.{found.name}")
        assert not hasattr(module, "__wrapped__")
