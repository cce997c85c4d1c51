"""All state of an operator is built together, from the handles of a checkpoint; a build that fails leaves nothing
open.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from holdfast.errors import CorruptFileError, HoldfastError, RestoreError
from holdfast.runtime.epoch import RestoredJob
from holdfast.runtime.operator import Operator
from holdfast.runtime.plan import JobPlan, OperatorSpec, TaskOptions
from holdfast.runtime.state_handler import StreamOperatorStateHandler
from holdfast.state.backends import load_backend
from holdfast.state.descriptors import ListStateDescriptor, ValueStateDescriptor
from holdfast.state.handles import CheckpointRequest, OperatorRecord, SnapshotType
from holdfast.state.lmdb import environments
from holdfast.state.parts_file import PartsFileReader
from holdfast.state.raw_state import RawStateOutputs
from holdfast.state.store import Stamp
from holdfast.state.timers import TimeDomain
from holdfast.types.typeinfo import Types
from tests.state.snapshot_memory import MemoryFiles

NUMBERS = ListStateDescriptor("numbers", Types.LONG())
COUNT = ValueStateDescriptor("count", Types.LONG())
REQUEST = CheckpointRequest(7, SnapshotType.CHECKPOINT, 0, 1, 1)


def store_of(directory: Path, subtask: int = 0, parallelism: int = 1, attempt: int = 1) -> StreamOperatorStateHandler:
    spec = OperatorSpec(
        "id", "Op", Operator, cloudpickle.dumps(None), parallelism, 16, Types.LONG(), key_type=Types.LONG(), keyed=True
    )
    plan = JobPlan("job", "job", 1, (), (), load_backend("lmdb", {}), TaskOptions(local_dir=str(directory)))
    return StreamOperatorStateHandler(plan, attempt, spec, subtask)


def checkpoint(directory: Path, files: MemoryFiles) -> RestoredJob:
    """One subtask with every kind of state, larger than what is read at once."""
    store = store_of(directory)
    state = store.open(Stamp(0, "new"), None, None, None)
    assert state.restored_checkpoint_id is None and not state.has_restored_state
    assert state.keyed_state is not None and state.timers is not None
    state.operator_state.get_list_state(ListStateDescriptor("texts", Types.STRING())).update(["x" * 10_000] * 50)
    count = state.keyed_state.state(COUNT)
    state.keyed_state.context.key = state.keyed_state.context.identity = 1
    count.update(5)
    state.timers.queue("user", TimeDomain.EVENT_TIME).register(10, 1)
    with store.raw_outputs() as raw:
        raw.keyed().start_new_key_group(3)
        raw.keyed().write(b"k" * 400_000)
        raw.operator().start_new_partition()
        raw.operator().write(b"p" * 400_000)
    snapshot = store.prepare(REQUEST, "nonce", raw, (0, False)).write(files, lambda: None)
    assert snapshot.raw_keyed is not None and snapshot.raw_operator is not None
    assert snapshot.bytes_written == sum(len(data) for data in files.files.values())
    store.close()
    return RestoredJob(7, 1, (OperatorRecord("id", None, "Op", 1, 16, (snapshot,)),))


def test_one_object_holds_all_that_was_assigned(tmp_path: Path) -> None:
    files = MemoryFiles()
    restored = checkpoint(tmp_path, files)
    files.bytes_read = 0
    store = store_of(tmp_path / "again")
    state = store.open(Stamp(1, "restore"), restored, files, None)
    assert (state.restored_checkpoint_id, state.has_restored_state) == (7, True)
    assert state.operator_state.get_registered_state_names() == {"texts"}
    assert state.keyed_state is not None and state.timers is not None
    assert state.timers.queue("user", TimeDomain.EVENT_TIME).count() == 1
    assert [one.get_stream().read() for one in state.raw_keyed_inputs] == [b"k" * 400_000]
    assert [one.get_stream().read() for one in state.raw_operator_inputs] == [b"p" * 400_000]
    assert store.restored_bytes == files.bytes_read > 1_200_000
    store.close()


def test_raw_state_that_nobody_asks_for_is_not_dropped_in_silence(tmp_path: Path) -> None:
    files = MemoryFiles()
    restored = checkpoint(tmp_path, files)
    store = store_of(tmp_path / "again")
    state = store.open(Stamp(1, "restore"), restored, files, None)
    with pytest.raises(RestoreError, match=r"operator 'Op'.* raw keyed state.*get_raw_keyed_state_inputs\(\)"):
        state.initialized("operator 'Op', subtask 1/1")
    store.close()


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[PartsFileReader]:
    found: list[PartsFileReader] = []
    make = PartsFileReader.__init__

    def noting(self: PartsFileReader, *arguments: Any) -> None:
        make(self, *arguments)
        found.append(self)

    monkeypatch.setattr(PartsFileReader, "__init__", noting)
    return found


def damage(files: MemoryFiles, part: str, place: int) -> None:
    (path,) = (path for path in files.files if path.endswith(part))
    data = bytearray(files.files[path])
    data[place] ^= 1
    files.files[path] = bytes(data)


@pytest.mark.parametrize(
    ("part", "place", "readers"),
    [("nonce-0", -3, 3), ("raw-operator", -3, 2), ("raw-keyed", -3, 1), ("-operator", 5, 1)],
    ids=["keyed state", "raw operator state", "raw keyed state", "an element of a list"],
)
def test_a_failed_build_closes_everything(
    tmp_path: Path, opened: list[PartsFileReader], part: str, place: int, readers: int
) -> None:
    files = MemoryFiles()
    restored = checkpoint(tmp_path, files)
    if part == "-operator":
        part = "nonce-operator"
    damage(files, part, place)
    store = store_of(tmp_path / "again")
    with pytest.raises(CorruptFileError):
        store.open(Stamp(1, "restore"), restored, files, None)
    assert len(opened) == readers and all(file.closed for file in opened)
    assert not _open_below(tmp_path), "the local store is closed"


def test_a_mismatch_found_by_a_function_leaves_nothing_open_either(
    tmp_path: Path, opened: list[PartsFileReader]
) -> None:
    files = MemoryFiles()
    restored = checkpoint(tmp_path, files)
    store = store_of(tmp_path / "again")
    state = store.open(Stamp(1, "restore"), restored, files, None)
    stream = next(iter(state.raw_keyed_inputs)).get_stream()
    with pytest.raises(HoldfastError, match=r"operator 'Op', subtask 1/1: operator state 'texts' was stored with"):
        state.operator_state.get_list_state(ListStateDescriptor("texts", Types.LONG()))
    store.rollback()
    store.close()
    assert stream.closed and all(file.closed for file in opened)
    assert not _open_below(tmp_path)


def test_nothing_raw_is_written_where_nothing_was(tmp_path: Path) -> None:
    store = store_of(tmp_path)
    store.open(Stamp(0, "new"), None, None, None)
    files = MemoryFiles()
    snapshot = store.prepare(REQUEST, "nonce", RawStateOutputs("op", None), (0, False)).write(files, lambda: None)
    assert (snapshot.operator_state, snapshot.raw_keyed, snapshot.raw_operator) == (None, None, None)
    store.close()


def _open_below(directory: Path) -> list[str]:
    return [path for path in environments._environments if path.startswith(str(directory))]
