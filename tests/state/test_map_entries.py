"""Entries that come to a map state together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.state.descriptors import MapStateDescriptor
from tests.state.backend_under_test import Subtask
from tests.state.stores import BACKENDS

COUNTS = MapStateDescriptor("counts", "string", "bigint")
ENTRIES = {"a": 1, "b": 2}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("given", [dict, dict.items, lambda entries: list(entries.items())])
def test_a_mapping_or_pairs(backend: str, given: Callable[[dict[str, int]], Any], tmp_path: Path) -> None:
    """PyFlink's keyed state takes pairs alone, and its broadcast state a mapping alone."""
    task = Subtask(backend, tmp_path)
    task.at(7)
    state = task.backend.state(COUNTS)
    state.put("a", 0)
    state.put_all(given(ENTRIES))
    assert dict(state.items()) == ENTRIES
    task.next_epoch(cached=False)
    task.at(7)
    assert dict(task.backend.state(COUNTS).items()) == ENTRIES
    task.close()
