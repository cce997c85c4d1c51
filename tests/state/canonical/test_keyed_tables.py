"""Keyed state through the tables of a savepoint: written by any backend, read by any, the same."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.common import Time
from holdfast.errors import CorruptFileError
from holdfast.state.canonical import keyed_tables
from holdfast.state.canonical.keyed_tables import write_keyed_tables
from holdfast.state.canonical.places import TablePlace
from holdfast.state.cells import unpack_elements
from holdfast.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from holdfast.state.entry_strategies import KeyDelta
from holdfast.state.handles import CheckpointRequest, KeyedSnapshot, SavepointFormat, SnapshotType
from holdfast.state.keyed_backend import KeyedScope, KeyedStateBackend
from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.keys import KeyCodec
from holdfast.state.layout import read_id
from holdfast.state.regrouping import Regrouping
from holdfast.state.restore import KeyedShare, RestoreForecast, restore_into
from holdfast.state.snapshots import async_write, sync_prepare
from holdfast.state.store import Stamp
from holdfast.state.timers import TimeDomain
from holdfast.state.ttl_config import StateTtlConfig
from holdfast.testing.contracts.keyed_subtask import MAX_PARALLELISM, scope_of
from holdfast.testing.contracts.stores import content
from holdfast.types.row import Row
from holdfast.types.typeinfo import TypeInformation, Types
from tests.kit.properties import examples
from tests.state.backend_under_test import Subtask
from tests.state.canonical.typed_values import KEY_TYPES, VALUE_TYPES
from tests.state.snapshot_memory import MemoryFiles
from tests.state.stores import BACKENDS, forget_process_caches, make_backend

ALL = KeyGroupRange(0, MAX_PARALLELISM - 1)
SAVEPOINT = CheckpointRequest(5, SnapshotType.SAVEPOINT, 0, 1, 1, savepoint_format=SavepointFormat.CANONICAL)


class Concat:
    """An aggregate function over anything: its accumulator is one of its values."""

    def create_accumulator(self) -> Any:
        return None

    def add(self, value: Any, accumulator: Any) -> Any:
        return value

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, one: Any, other: Any) -> Any:
        return other


def savepoint(backend: KeyedStateBackend, files: MemoryFiles, subtask: int = 0) -> KeyedSnapshot:
    place = TablePlace.of("op-id", "my uid", "Op", subtask, "nonce")
    return write_keyed_tables(sync_prepare(backend, SAVEPOINT, "op", subtask), files, place, lambda: None)


def restored_content(
    name: str, directory: Path, snapshots: list[KeyedSnapshot], files: MemoryFiles, groups: KeyGroupRange = ALL
) -> dict[bytes, bytes]:
    store = make_backend(name).open(directory)
    restore_into(store, KeyedShare.of(snapshots, groups), files, Stamp(7, "restored"))
    store.begin(Stamp(7, "restored"))
    try:
        return content(store)
    finally:
        store.close()
        forget_process_caches()


def without_chunks(backend: KeyedStateBackend, found: dict[bytes, bytes]) -> dict[bytes, Any]:
    """Stored entries, lists as their elements: how these are cut into chunks is nobody's business."""
    lists = {meta.state_id: 8 if meta.ttl else 0 for meta in backend.states_meta() if meta.kind == "list"}
    joined: dict[bytes, Any] = {}
    for stored, value in sorted(found.items()):
        if read_id(stored) in lists and not stored.startswith(b"\xff\xff"):
            joined.setdefault(stored[:-8], []).extend(unpack_elements(value[lists[read_id(stored)] :]))
        else:
            joined[stored] = value
    return joined


def descriptors(type_info: TypeInformation, map_key: TypeInformation, ttl: bool) -> list[Any]:
    found = [
        ValueStateDescriptor("value", type_info),
        ListStateDescriptor("list", type_info),
        MapStateDescriptor("map", map_key, type_info),
        ReducingStateDescriptor("reducing", lambda one, other: other, type_info),
        AggregatingStateDescriptor("aggregating", Concat(), type_info),
    ]
    for descriptor in found if ttl else ():
        descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.days(1)).build())
    return found


def fill(task: Subtask, data: st.DataObject, states: list[Any], draw: Callable[[], Any], map_keys: Any) -> None:
    namespace_type = Types.STRING()
    value, elements, entries, reducing, aggregating = (task.backend.state(one, namespace_type) for one in states)
    timers = task.backend.timers("t", TimeDomain.EVENT_TIME, namespace_type)
    for namespace in (None, "", "w"):
        for state in (value, elements, entries, reducing, aggregating):
            state.set_current_namespace(namespace)
        value.update(draw())
        for _ in range(2):
            elements.add_all([draw() for _ in range(data.draw(st.integers(0, 3)))])
            task.backend.flush()
        entries.put(data.draw(map_keys), draw())
        entries.put(data.draw(map_keys), None)
        reducing.add(draw())
        aggregating.add(draw())
        timers.register(data.draw(st.integers(-(2**63), 2**63 - 1)), task.backend.context.key, namespace)


@pytest.mark.parametrize("source", BACKENDS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=examples(40))
@given(st.data())
def test_states_of_every_kind_and_type(source: str, tmp_path_factory: Any, data: st.DataObject) -> None:
    key_type, keys = data.draw(KEY_TYPES)
    map_key_type, map_keys = data.draw(KEY_TYPES)
    type_info, values = data.draw(VALUE_TYPES)
    scope = KeyedScope("op", KeyCodec.for_type(key_type), ALL, MAX_PARALLELISM)
    folder = tmp_path_factory.mktemp("state")
    task = Subtask(source, folder / "source", scope)
    try:
        states = descriptors(type_info, map_key_type, data.draw(st.booleans()))
        for key in data.draw(st.lists(keys, max_size=3)):
            task.at(key)
            fill(task, data, states, lambda: data.draw(values), map_keys)
        files = MemoryFiles()
        found = savepoint(task.backend, files)
        target = data.draw(st.sampled_from(BACKENDS))
        again = restored_content(target, folder / "target", [found], files)
        assert without_chunks(task.backend, again) == without_chunks(task.backend, content(task.store))
    finally:
        task.close()


NUMBERS = ValueStateDescriptor("numbers", Types.TUPLE([Types.LONG(), Types.STRING()]))
WORDS = ListStateDescriptor("words", Types.STRING())


def counted(name: str, directory: Path, keys: int, groups: KeyGroupRange = ALL) -> Subtask:
    task = Subtask(name, directory, scope_of(key_groups=groups))
    numbers, words = task.backend.state(NUMBERS), task.backend.state(WORDS)
    timers = task.backend.timers("t", TimeDomain.PROCESSING_TIME)
    codec = task.scope.key_codec
    for key in range(keys):
        if codec.hash(key) % MAX_PARALLELISM in groups:
            task.at(key)
            numbers.update((key, f"value {key}"))
            words.add_all([f"{key}", "x"])
            timers.register(key, key)
    task.backend.flush()
    return task


@pytest.mark.parametrize(("source", "target"), list(product(BACKENDS, BACKENDS)))
def test_any_backend_reads_what_any_wrote(source: str, target: str, tmp_path: Path) -> None:
    task = counted(source, tmp_path / "source", 2000)
    files = MemoryFiles()
    found = savepoint(task.backend, files)
    again = restored_content(target, tmp_path / "target", [found], files)
    assert without_chunks(task.backend, again) == without_chunks(task.backend, content(task.store))
    task.close()


@pytest.mark.parametrize("parallelism", [1, 2, 3, 5])
def test_rescaled_from_tables_each_subtask_reads_its_row_groups(
    tmp_path: Path, parallelism: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyed_tables, "ROW_GROUP_ROWS", 500)
    files = MemoryFiles()
    written, expected = [], {}
    for subtask in range(2):
        task = counted("heap", tmp_path / f"source-{subtask}", 20_000, KeyGroupRange.of(subtask, MAX_PARALLELISM, 2))
        written.append(savepoint(task.backend, files, subtask))
        expected |= without_chunks(task.backend, content(task.store))
        backend = task.backend
        task.close()
    total = sum(len(data) for data in files.files.values())
    found = {}
    for subtask in range(parallelism):
        groups = KeyGroupRange.of(subtask, MAX_PARALLELISM, parallelism)
        before = files.bytes_read
        found |= without_chunks(
            backend, restored_content("heap", tmp_path / f"target-{subtask}", written, files, groups)
        )
        assert RestoreForecast(files).bytes_of(KeyedShare.of(written, groups)) == files.bytes_read - before
    assert found == expected
    # A row group that two subtasks share is read by both, and so is every footer.
    footers = sum(one.handle.table.footer_bytes for s in written for one in s.files if one.handle.table is not None)
    most = {1: 1.0, 2: 1.0, 3: 1.08, 5: 1.15}[parallelism]
    assert total <= files.bytes_read <= total * most + (0 if parallelism <= 2 else parallelism * footers / 2)


def test_with_another_maximum_parallelism_keys_are_grouped_anew(tmp_path: Path) -> None:
    files = MemoryFiles()
    task = counted("heap", tmp_path / "source", 500)
    found = savepoint(task.backend, files)
    task.close()
    regrouping = Regrouping(task.scope.key_codec, 64)
    store = make_backend("heap").open(tmp_path / "target")
    share = KeyedShare.of([found], KeyGroupRange(0, 63), regrouping)
    restore_into(store, share, files, Stamp(1, "r"))
    store.close()
    scope = KeyedScope("op", task.scope.key_codec, KeyGroupRange(0, 63), 64)
    again = Subtask("heap", tmp_path / "target", scope)
    for key in range(500):
        again.at(key)
        assert again.backend.state(NUMBERS).value() == (key, f"value {key}")
    again.close()


def test_a_flipped_byte_is_found_wherever_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyed_tables, "ROW_GROUP_ROWS", 50)
    files = MemoryFiles()
    task = counted("heap", tmp_path / "source", 400)
    found = savepoint(task.backend, files)
    task.close()
    share = KeyedShare.of([found], KeyGroupRange(0, MAX_PARALLELISM // 2))
    for path, data in list(files.files.items()):
        read = _ranges_read(files, share, path, tmp_path)
        for place in [one for start, end in read for one in {start, (start + end) // 2, end - 1}]:
            files.files[path] = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
            with pytest.raises(CorruptFileError, match="checksum"):
                _restore(files, share, tmp_path)
        files.files[path] = data
    _restore(files, share, tmp_path)


def _restore(files: Any, share: KeyedShare, tmp_path: Path) -> None:
    store = make_backend("heap").open(tmp_path / "target")
    restore_into(store, share, files, Stamp(1, "r"))
    store.close()
    forget_process_caches()


def _ranges_read(files: MemoryFiles, share: KeyedShare, path: str, tmp_path: Path) -> list[tuple[int, int]]:
    ranges: list[tuple[int, int]] = []

    class Noting(MemoryFiles):
        def read_range(self, handle: Any, offset: int, length: int) -> bytes:
            if handle.path == path:
                ranges.append((offset, offset + length))
            return files.read_range(handle, offset, length)

    _restore(Noting(), share, tmp_path)
    assert ranges
    return ranges


def test_arrow_alone_reads_a_table(tmp_path: Path) -> None:
    files = MemoryFiles()
    task = counted("heap", tmp_path / "source", 100)
    entries = task.backend.state(MapStateDescriptor("by day", Types.SQL_DATE(), Types.PICKLED_BYTE_ARRAY()))
    task.at(7)
    entries.put(__import__("datetime").date(2024, 2, 29), {"any": "thing"})
    savepoint(task.backend, files)
    task.close()
    tables = {path.split("/", 1)[1].rpartition("/")[0]: data for path, data in files.files.items()}
    assert sorted(tables) == ["keyed/by%20day", "keyed/numbers", "keyed/words", "timers/processing_time.t"]
    numbers = pq.read_table(io.BytesIO(tables["keyed/numbers"]))
    assert numbers.column_names == ["key_group", "key", "value"]
    assert numbers.schema.field("value").type == pa.struct([("f0", pa.int64()), ("f1", pa.string())])
    assert {row["key"]: row["value"] for row in numbers.to_pylist()}[42] == {"f0": 42, "f1": "value 42"}
    about = json.loads(numbers.schema.metadata[b"holdfast"])
    assert (about["uid"], about["operator"], about["state"], about["kind"]) == ("my uid", "Op", "numbers", "value")
    words = pq.read_table(io.BytesIO(tables["keyed/words"]), filters=[("key", "=", 42)])
    assert [(row["position"], row["value"]) for row in words.to_pylist()] == [(0, "42"), (1, "x")]
    timers = pq.read_table(io.BytesIO(tables["timers/processing_time.t"]), filters=[("key", "=", 42)])
    assert [(row["timestamp"], row["domain"]) for row in timers.to_pylist()] == [(42, "processing_time")]
    by_day = pq.read_table(io.BytesIO(tables["keyed/by%20day"])).to_pylist()
    assert [(str(row["map_key"]), type(row["map_value"])) for row in by_day] == [("2024-02-29", bytes)]


def test_keys_of_no_declared_type_can_be_read(tmp_path: Path) -> None:
    task = Subtask("heap", tmp_path / "source", scope_of(None))
    for key in (5, "user-1", ("a", 2)):
        task.at(key)
        task.backend.state(NUMBERS).update((1, "x"))
    files = MemoryFiles()
    savepoint(task.backend, files)
    task.close()
    table = pq.read_table(io.BytesIO(next(iter(files.files.values()))))
    assert sorted(table.column("key").to_pylist()) == sorted(["5", "user-1", "('a', 2)"])
    assert table.column_names == ["key_group", "key", "key_stored", "value"]


@pytest.mark.parametrize("name", BACKENDS)
def test_a_savepoint_is_full_and_leaves_change_marks_alone(name: str, tmp_path: Path) -> None:
    task = counted(name, tmp_path / "source", 50)
    task.next_epoch()
    base = task.stamp.epoch
    task.at(7)
    task.backend.state(NUMBERS).update((0, "changed"))
    delta = CheckpointRequest(6, SnapshotType.CHECKPOINT, 0, 1, base + 1, base)
    files = MemoryFiles()

    def changed() -> list[int]:
        prepared = KeyDelta().prepare(task.backend, delta, base)
        assert prepared is not None
        return [file.entries for file in async_write(prepared, files, "delta").files]

    task.backend.end_epoch()
    before = changed()
    asked = msgspec.structs.replace(SAVEPOINT, base_epoch=base)
    place = TablePlace.of("op-id", None, "Op", 0, "nonce")
    found = write_keyed_tables(sync_prepare(task.backend, asked, "op", 0), files, place, lambda: None)
    assert sum(file.entries for file in found.files if file.state_id == 0) == 50
    assert before == changed() == [1]
    task.close()


def test_fields_may_have_any_name(tmp_path: Path) -> None:
    names = ["", "a.b", "Grüße", "list", "value", "A", "a"]
    state = ValueStateDescriptor("rows", Types.ROW_NAMED(names, [Types.LONG()] * len(names)))
    task = Subtask("heap", tmp_path / "source")
    task.at(1)
    task.backend.state(state).update(Row.factory(names)(range(len(names))))
    files = MemoryFiles()
    found = savepoint(task.backend, files)
    again = restored_content("heap", tmp_path / "target", [found], files)
    assert again == content(task.store)
    task.close()


def test_large_tables_are_several_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyed_tables, "ROW_GROUP_ROWS", 100)
    monkeypatch.setattr(keyed_tables, "PART_BYTES", 10_000)
    task = counted("heap", tmp_path / "source", 5000)
    files = MemoryFiles()
    found = savepoint(task.backend, files)
    assert len(found.files) > 10
    again = restored_content("heap", tmp_path / "target", [found], files)
    assert without_chunks(task.backend, again) == without_chunks(task.backend, content(task.store))
    task.close()
