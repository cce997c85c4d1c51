"""State that could not be written: the epoch ends there, whoever has caught the error."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import StateError
from holdfast.state.descriptors import ListStateDescriptor, ValueStateDescriptor
from tests.state.backend_under_test import Subtask
from tests.state.stores import BACKENDS


@pytest.fixture(params=BACKENDS)
def task(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Subtask]:
    subtask = Subtask(request.param, tmp_path)
    yield subtask
    subtask.close()


def test_an_epoch_of_which_something_was_not_written_is_not_committed(
    task: Subtask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever catches the error: a checkpoint that cannot be stored is declined, and the epoch goes on."""
    counts, rows = ValueStateDescriptor("count", "bigint"), ListStateDescriptor("rows", "bigint")
    task.at(1)
    task.backend.state(counts).update(1)
    task.backend.state(rows).update([1])
    task.next_epoch(cached=True)
    task.at(1)
    task.backend.state(counts).update(2)
    task.backend.state(rows).clear()

    def full(*_: Any) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="no space left"):
        patch.setattr(type(task.store), "delete_range", full)
        task.backend.end_epoch()
    before = task.stamp
    with pytest.raises(StateError, match=r"operator 'counter' could not be written .* \(OSError: no space left\)"):
        task.commit()
    task.stamp = before
    task.restart()
    task.at(1)
    assert (task.backend.state(counts).value(), task.backend.state(rows).get()) == (1, [1])
