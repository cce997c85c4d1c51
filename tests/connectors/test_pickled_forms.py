"""Positions, and files that wait, as they were stored before they had types: pickled, in version 0."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast.common import Types
from holdfast.connectors.collection import CollectionSource
from holdfast.connectors.file_sink.held import HeldFile
from holdfast.connectors.file_sink.kept import KEPT_TYPE, KeptFiles, of_pickled
from holdfast.connectors.files.seen import SeenFiles
from holdfast.connectors.files.source import FileSource
from holdfast.connectors.files.stored_position import STORED_TYPE, StoredPosition
from holdfast.connectors.kafka.source import KafkaSource
from holdfast.connectors.sequence import NumberSequenceSource, SequenceSource
from holdfast.errors import StateMigrationError
from holdfast.runtime.source import POSITIONS, ReaderContext, Source, positions_of
from holdfast.state.handles import DistributionMode, ListStateSnapshot
from holdfast.state.operator_state import DefaultOperatorStateBackend, RegisteredStates
from holdfast.state.serializers import serializer_for
from tests.connectors.driving import read_epoch

PICKLED = {"value": serializer_for(Types.PICKLED_BYTE_ARRAY()).snapshot()}
HELD = HeldFile("file:///out", "a/b.json", "a", 12, "00", "json", ".json", 5, 7, rolled=True, checkpoints=2)


def migrated(source: Source, pickled: list[Any]) -> list[Any]:
    """Positions of before, as a restore gives them to the reader."""
    stored = ListStateSnapshot(POSITIONS, DistributionMode.UNION, PICKLED, tuple(map(pickle.dumps, pickled)))
    backend = DefaultOperatorStateBackend("the source", RegisteredStates.of([stored]))
    return backend.get_union_list_state(positions_of(source)).get()


@pytest.mark.parametrize(
    ("source", "pickled", "typed"),
    [
        (CollectionSource([1, 2, 3]), [2], [2]),
        (NumberSequenceSource(0, 99), [[10, 49], [60, 99]], [(10, 49), (60, 99)]),
        (SequenceSource(), [[0, 7], [1, 6]], [(0, 7), (1, 6)]),
    ],
    ids=["collection", "numbers", "sequence"],
)
def test_positions(source: Source, pickled: list[Any], typed: list[Any]) -> None:
    assert migrated(source, pickled) == typed


def test_positions_of_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1\n2\n3\n")
    (tmp_path / "b.txt").write_text("4\n")
    seen = SeenFiles()
    seen.add(str(tmp_path / "b.txt"), 2)
    file = {"path": str(tmp_path / "a.txt"), "size": 6, "modified_ms": 0, "offset": 2}
    pickled = [{"file": file}, {"seen": seen.packed(), "inferred": None, "monitors": True}]
    source = FileSource.text(str(tmp_path))
    restored = migrated(source, pickled)
    assert read_epoch(source.create_reader(ReaderContext(0, 1, restored))) == ["2", "3"]


def test_positions_of_kafka() -> None:
    assert KafkaSource.typed_position(["orders", 3, 17, None, "id"]) == ("orders", 3, 17, None, "id")


def test_files_that_wait() -> None:
    pickled = [{"held": msgspec.to_builtins(HELD)}, {"bucket": "a", "last_ms": 9}]
    kept = KeptFiles()
    kept.restore(map(of_pickled, pickled))
    assert (kept.held, kept.buckets) == ([HELD], {"a": 9})
    again, serializer = KeptFiles(), serializer_for(KEPT_TYPE)
    again.restore(serializer.decode_many(serializer.encode_many(kept.elements())))
    assert again == kept


def test_the_columns_are_the_fields() -> None:
    assert tuple(KEPT_TYPE.field_names) == HeldFile.__struct_fields__  # type: ignore[attr-defined]  # of a row
    assert tuple(STORED_TYPE.field_names) == StoredPosition._fields  # type: ignore[attr-defined]  # of a row


class _Declared(CollectionSource):
    """A source of a program that declares the type of its positions later."""

    def position_type(self) -> Any:
        return "path STRING, offset BIGINT"

    @staticmethod
    def typed_position(pickled: dict[str, Any]) -> tuple[Any, ...]:
        return pickled["path"], pickled["offset"]


class _Open(CollectionSource):
    def position_type(self) -> Any:
        return None


def test_a_source_of_a_program_declares_its_type() -> None:
    pickled = [{"path": "a", "offset": 7}]
    assert migrated(_Open([]), pickled) == pickled
    (position,) = migrated(_Declared([]), pickled)
    assert (position["path"], position["offset"]) == ("a", 7)
    with pytest.raises(StateMigrationError, match="the function of migrate_from"):
        migrated(_Declared([]), [("a", 7)])
