"""Stored bytes, keys, hashes and columns of every type are what commit bb627a5 made of them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.types.golden import golden

STORED: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "fixtures/types/bb627a5.json").read_text(encoding="ascii")
)
now = cache(golden)


@pytest.mark.parametrize(("about", "name"), [(about, name) for about, names in STORED.items() for name in names])
def test_types_are_what_they_were(about: str, name: str) -> None:
    assert json.loads(json.dumps(now()[about][name])) == STORED[about][name]
