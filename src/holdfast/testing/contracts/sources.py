"""What every source must do."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from holdfast.runtime.source import Source, SourceFunction
from holdfast.testing.endpoints import SourceHarness
from holdfast.testing.snapshot import HarnessSnapshot

AnySource = Source | SourceFunction

#: Within so many epochs a source of the suite has ended.
_MOST_EPOCHS = 5_000


class SourceContract(ABC):
    """The suite for a source, as a ``Source`` or as a ``SourceFunction``.

    A subclass gives the source by the fixture ``source``, one that comes to an end, and its rows by ``rows``: ten, or a
    few hundred. Both are told the same ``tmp_path``.
    """

    #: How many subtasks the suite tries at most; fewer where the source says so.
    most_subtasks: ClassVar[int] = 4

    @pytest.fixture
    @abstractmethod
    def source(self, tmp_path: Path) -> AnySource:
        """A source that nobody has read yet."""

    @abstractmethod
    def rows(self, tmp_path: Path) -> Iterable[Any]:
        """All rows that it gives, in any order."""

    @pytest.mark.parametrize("limit", [1, 7, 1_000_000])
    def test_every_row_comes_once_within_the_limit_of_its_epoch(
        self, source: AnySource, tmp_path: Path, limit: int
    ) -> None:
        with SourceHarness.parallel(self._parallelism(source), source) as subtasks:
            assert sorted_rows(_read_to_the_end(subtasks, limit)) == sorted_rows(self.rows(tmp_path))
            assert all(subtask.read() == [] and subtask.ended for subtask in subtasks), "nothing comes behind the end"

    def test_an_epoch_that_asks_for_nothing_gives_nothing(self, source: AnySource, tmp_path: Path) -> None:
        with SourceHarness(source) as subtask:
            assert subtask.read(0) == []
            assert sorted_rows(_read_to_the_end([subtask], 100)) == sorted_rows(self.rows(tmp_path))

    def test_it_goes_on_from_its_positions_with_another_parallelism(self, source: AnySource, tmp_path: Path) -> None:
        most = self._parallelism(source)
        subtasks = SourceHarness.parallel(1, source)
        found: list[Any] = []
        for parallelism in (most, 1, max(most - 1, 1)):
            found += _read(subtasks, 1)
            assert not all(subtask.ended for subtask in subtasks), "it has ended too soon for this test: give more rows"
            subtasks = subtasks.rescaled(parallelism)
        with subtasks:
            found += _read_to_the_end(subtasks, 100)
        assert sorted_rows(found) == sorted_rows(self.rows(tmp_path))

    def test_rows_of_an_epoch_that_failed_come_again(self, source: AnySource, tmp_path: Path) -> None:
        with SourceHarness(source) as subtask:
            first = subtask.read(3)
            snapshot = subtask.snapshot()
            subtask.read(4)
            with subtask.restored(snapshot) as again:
                assert sorted_rows(first + _read_to_the_end([again], 100)) == sorted_rows(self.rows(tmp_path))

    def test_nothing_comes_again_behind_its_end(self, source: AnySource, tmp_path: Path) -> None:
        with SourceHarness(source) as subtask:
            _read_to_the_end([subtask], 100)
            with subtask.restored() as again:
                assert again.read() == []

    @pytest.mark.parametrize("seed", range(5))
    def test_every_row_comes_once_whatever_fails(self, source: AnySource, tmp_path: Path, seed: int) -> None:
        rng = random.Random(seed)
        rows = _read_under_failures(source, rng, self._parallelism(source))
        assert sorted_rows(rows) == sorted_rows(self.rows(tmp_path))

    def _parallelism(self, source: AnySource) -> int:
        return min(self.most_subtasks, source.max_parallelism or self.most_subtasks)


def sorted_rows(rows: Iterable[Any]) -> list[Any]:
    """In one order, whatever their types."""
    return sorted(rows, key=repr)


def _read(subtasks: Iterable[SourceHarness], limit: int) -> list[Any]:
    """One epoch."""
    found: list[Any] = []
    for subtask in subtasks:
        rows = subtask.read(limit)
        assert len(rows) <= limit, f"the source gave {len(rows)} rows where it was asked for {limit} at most"
        found += rows
    return found


def _read_to_the_end(subtasks: Iterable[SourceHarness], limit: int) -> list[Any]:
    harnesses = list(subtasks)
    found: list[Any] = []
    for _ in range(_MOST_EPOCHS):
        found += _read(harnesses, limit)
        if all(subtask.ended for subtask in harnesses):
            return found
    raise AssertionError(f"the source has not ended within {_MOST_EPOCHS} epochs")


def _read_under_failures(source: AnySource, rng: random.Random, most: int) -> list[Any]:
    """All rows that a job delivers whose workers come and go, and that falls back to its checkpoints."""
    subtasks = SourceHarness.parallel(rng.randint(1, most), source)
    checkpoint: HarnessSnapshot = subtasks.snapshot()
    delivered: list[Any] = []
    since: list[Any] = []
    for _ in range(_MOST_EPOCHS):
        since += _read(subtasks, rng.randint(0, 25))
        for subtask in subtasks:
            if rng.random() < 0.4:
                subtask.forget_live_objects()
        ended = all(subtask.ended for subtask in subtasks)
        if ended or rng.random() < 0.3:
            checkpoint = subtasks.snapshot()
            delivered, since = delivered + since, []
        if ended:
            subtasks.close()
            return delivered
        if rng.random() < 0.15:
            since = []
            subtasks = subtasks.rescaled(rng.randint(1, most), checkpoint)
    raise AssertionError(f"the source has not ended within {_MOST_EPOCHS} epochs")
