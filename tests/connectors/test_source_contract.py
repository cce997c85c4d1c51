"""The contract of sources, on Holdfast's own, in both forms."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.connectors.collection import CollectionSource
from holdfast.connectors.files.source import FileSource
from holdfast.connectors.sequence import NumberSequenceSource
from holdfast.datastream import CheckpointedFunction, ParallelSourceFunction, ReadLimit, SourceFunction
from holdfast.datastream.state import ListStateDescriptor
from holdfast.runtime.context import FunctionInitializationContext, FunctionSnapshotContext
from holdfast.runtime.source import Source
from holdfast.testing.contracts import SourceContract
from holdfast.types.typeinfo import Types


class TestCollection(SourceContract):
    @pytest.fixture
    def source(self, tmp_path: Path) -> Source:
        return CollectionSource(list(range(200)), Types.LONG())

    def rows(self, tmp_path: Path) -> range:
        return range(200)


class TestNumberSequence(SourceContract):
    @pytest.fixture
    def source(self, tmp_path: Path) -> Source:
        return NumberSequenceSource(-50, 149)

    def rows(self, tmp_path: Path) -> range:
        return range(-50, 150)


class TestFiles(SourceContract):
    @pytest.fixture
    def source(self, tmp_path: Path) -> Source:
        for number in range(8):
            path = tmp_path / "in" / f"{number}.txt"
            path.parent.mkdir(exist_ok=True)
            path.write_text("".join(f"{number * 20 + line}\n" for line in range(20)))
        return FileSource.text(str(tmp_path / "in"), bounded=True)

    def rows(self, tmp_path: Path) -> list[str]:
        return [str(number) for number in range(160)]


class Squares(ParallelSourceFunction, CheckpointedFunction):
    """Numbers that are split between its subtasks by themselves."""

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        store = context.get_operator_state_store()
        self.stored = store.get_list_state(ListStateDescriptor("left", Types.LONG()))
        if context.has_restored_state():
            self.left = list(self.stored.get())
        else:
            runtime = self.get_runtime_context()
            mine, step = runtime.get_index_of_this_subtask(), runtime.get_number_of_parallel_subtasks()
            self.left = list(range(mine, 150, step))

    def read(self, limit: ReadLimit) -> Iterator[list[int]]:
        rows, self.left = self.left[: limit.rows], self.left[limit.rows :]
        if rows:
            yield [number * number for number in rows]
        self.ended = not self.left

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        self.stored.update(self.left)


class TestFunction(SourceContract):
    @pytest.fixture
    def source(self, tmp_path: Path) -> SourceFunction:
        return Squares()

    def rows(self, tmp_path: Path) -> list[int]:
        return [number * number for number in range(150)]
