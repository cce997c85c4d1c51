"""Stored bytes, keys, hashes and columns of every type are what commit bb627a5 made of them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.types.golden import golden

#: How rows of ROW, which had no names then, are shown now; their bytes are the same.
SHOWN_NOW = {"<Row(1, 'a')>": "Row(f0=1, f1='a')", "<Row(None, None)>": "Row(f0=None, f1=None)"}


def _stored() -> dict[str, dict[str, Any]]:
    text = (Path(__file__).parents[1] / "fixtures/types/bb627a5.json").read_text(encoding="ascii")
    for before, now in SHOWN_NOW.items():
        text = text.replace(before, now)
    return dict(json.loads(text))


STORED = _stored()
described = cache(golden)


@pytest.mark.parametrize(("about", "name"), [(about, name) for about, names in STORED.items() for name in names])
def test_types_are_what_they_were(about: str, name: str) -> None:
    assert json.loads(json.dumps(described()[about][name])) == STORED[about][name]
