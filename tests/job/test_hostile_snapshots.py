"""Snapshots that somebody else may have written: nothing in them runs, wherever it is, unless that was allowed."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast import plan_restore
from holdfast.checkpoint.metadata_format import encode_metadata
from holdfast.checkpoint.savepoint import pickled_in_savepoint
from holdfast.checkpoint.storage import open_snapshot
from holdfast.common import Types, WatermarkStrategy
from holdfast.connectors.collect import Collection
from holdfast.connectors.discard import DiscardSink
from holdfast.connectors.memory_sink import RowsHandle
from holdfast.datastream import StreamExecutionEnvironment
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.datastream.engines import engines_from
from holdfast.errors import HoldfastError, PickledStateError
from holdfast.runtime.sink import TransactionName, TwoPhaseCommitSink
from holdfast.state.handles import DistributionMode, FileHandle, ListStateSnapshot, SavepointFormat
from holdfast.state.operator_state_file import encode_operator_state
from holdfast.state.serializers import serializer_for
from holdfast.storage.checksum import checksum
from holdfast.testing import TestSource
from holdfast.testing.in_process import InProcessEngine
from holdfast.types import pickling
from tests.hostile.outcome import REFUSED, is_a_case
from tests.integration.programs import environment
from tests.job.counting import settings
from tests.job.hostile_programs import PLACES, ROWS, Trace, build

PATH = "execution.state-recovery.path"
ALLOW = "holdfast.state.allow-pickle"
#: What each refusal is in the table of hostile cases.
CODE = ("code in savepoints", "every place")
CHECKPOINT = "checkpoint"
Record = Callable[[str, object], None]


class _Untouchable:
    """Stands in the place of Spark: whoever asks it for anything fails."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"the engine was asked for its {name}")


def refused(env: StreamExecutionEnvironment) -> str:
    """Why the job is refused, before there is an engine."""
    untouchable: Any = _Untouchable()
    with engines_from(lambda graph, settings: untouchable), pytest.raises(PickledStateError) as error:
        env.execute_async()
    return str(error.value)


def given(tmp_path: Path) -> dict[str, str]:
    """For jobs of this test alone, whose checkpoints stay."""
    retention = "execution.checkpointing.externalized-checkpoint-retention"
    return {"holdfast.job-id": tmp_path.name, "restart-strategy.type": "none", retention: "RETAIN_ON_CANCELLATION"}


def program(tmp_path: Path, place: str, **changes: str) -> StreamExecutionEnvironment:
    env = environment(**settings(tmp_path, **{**given(tmp_path), **changes}))
    build(env, place, str(tmp_path / "unpickled"))
    return env


def snapshot_of(env: StreamExecutionEnvironment, tmp_path: Path, form: str) -> str:
    """The snapshot of a job that has read all rows."""
    client = env.execute_async()
    while len(client.get_history().epochs) < 4 and client.is_running():
        time.sleep(0.002)
    if form == CHECKPOINT:
        client.cancel().result(30)
        return str(next(tmp_path.glob("chk/*/chk-*")))
    path = client.trigger_savepoint(str(tmp_path / "savepoints"), SavepointFormat(form)).result(30)
    client.cancel().result(30)
    return path


@pytest.mark.parametrize("form", [CHECKPOINT, *SavepointFormat])
@pytest.mark.parametrize("place", PLACES)
def test_nothing_is_unpickled_and_the_place_is_named(
    in_process: InProcessEngine,
    tmp_path: Path,
    place: str,
    form: str,
    caplog: pytest.LogCaptureFixture,
    record_property: Record,
) -> None:
    is_a_case(record_property, *CODE, REFUSED)
    trace, named = tmp_path / "unpickled", PLACES[place][1]
    with caplog.at_level(logging.WARNING):
        path = snapshot_of(program(tmp_path, place), tmp_path, form)
    lines = [line for line in caplog.text.splitlines() if "(uid hostile)" in line and named in line]
    assert lines and all("To declare its type:" in line for line in lines), "the job says so itself"
    assert len(set(pickled_in_savepoint(path))) == (0 if form == CHECKPOINT else 1)

    trace.unlink(missing_ok=True)
    start = {PATH: path, "holdfast.job-id": f"{tmp_path.name}-next"}
    reason = refused(program(tmp_path, place, **start))
    assert "(uid hostile): " in reason and named in reason and path in reason
    plan = plan_restore(program(tmp_path, place, **start), path)
    assert not plan.possible and named in "".join(plan.refusals())
    assert "pickled state" in str(plan)
    assert not trace.exists()


def test_where_it_is_allowed_it_is_unpickled(in_process: InProcessEngine, tmp_path: Path) -> None:
    path = snapshot_of(program(tmp_path, "union list"), tmp_path, "CANONICAL")
    trace = tmp_path / "unpickled"
    trace.unlink(missing_ok=True)
    start = {PATH: path, "holdfast.job-id": f"{tmp_path.name}-next", ALLOW: "true"}
    assert plan_restore(program(tmp_path, "union list", **start), path).possible
    assert trace.exists()
    client = program(tmp_path, "union list", **start).execute_async()
    while not client.get_history().epochs and client.is_running():
        time.sleep(0.002)
    assert client.is_running()
    client.cancel().result(30)


# -- what a program does not write, and somebody may


def declared(tmp_path: Path, sink: TwoPhaseCommitSink, **changes: str) -> StreamExecutionEnvironment:
    """A program whose states are declared, all of them."""
    env = environment(**settings(tmp_path, **{**given(tmp_path), **changes}))
    rows = env.from_source(TestSource(ROWS, Types.LONG()), WatermarkStrategy.no_watermarks(), "rows").uid("source")
    keyed = rows.key_by(lambda row: row, Types.LONG())
    keyed.map_with_state(lambda row, seen: (row, row), state_type=int, output_type=Types.LONG()).uid("kept").sink_to(
        sink
    ).uid("sink")
    return env


def doctored(path: str, uid: str, **changes: Any) -> None:
    """Write another ``_metadata``: what the first subtask of an operator says is replaced."""
    metadata, _ = open_snapshot(path)
    operators = [
        msgspec.structs.replace(
            record, subtasks=(msgspec.structs.replace(record.subtasks[0], **changes), *record.subtasks[1:])
        )
        if record.uid == uid
        else record
        for record in metadata.operators
    ]
    changed = msgspec.structs.replace(metadata, operators=tuple(operators))
    Path(path, "_metadata").write_bytes(encode_metadata(changed))


def pickled_list(name: str, mode: DistributionMode, trace: Path) -> dict[str, Any]:
    types = {"value": serializer_for(Types.PICKLED_BYTE_ARRAY()).snapshot()}
    element = pickling.dumps(Trace(str(trace)))
    data = encode_operator_state([ListStateSnapshot(name, mode, types, (element,))])
    handle = FileHandle("", len(data), checksum(data), inline=data)
    return {"operator_state": handle, "operator_tables": ()}


def collected(trace: Path, version: int) -> dict[str, Any]:
    rows = pickling.dumps([Trace(str(trace))])
    packed = rows if version == 0 else msgspec.msgpack.encode((None, [rows]))
    handle = msgspec.msgpack.encode(RowsHandle(TransactionName("job", "sink", 0, 1, 1, "nonce"), packed, version))
    return {"transactions": (handle,)}


def keyed_type(path: str, uid: str, stored: dict[str, Any]) -> dict[str, Any]:
    """The keyed state of an operator with another type of its values."""
    metadata, _ = open_snapshot(path)
    (record,) = [record for record in metadata.operators if record.uid == uid]
    keyed = record.subtasks[0].keyed
    assert keyed is not None
    states = tuple(
        msgspec.structs.replace(meta, serializers={**meta.serializers, "value": {"version": 1, "type": stored}})
        for meta in keyed.states
    )
    return {"keyed": msgspec.structs.replace(keyed, states=states)}


@pytest.mark.parametrize("form", [CHECKPOINT, "CANONICAL"])
@pytest.mark.parametrize("place", ["position", "kept files", "rows", "rows of before", "declared state"])
def test_what_is_put_into_a_snapshot_is_refused(
    in_process: InProcessEngine, tmp_path: Path, place: str, form: str, record_property: Record
) -> None:
    is_a_case(record_property, *CODE, REFUSED)
    trace = tmp_path / "unpickled"
    sinks: dict[str, Any] = {
        "kept files": lambda: FileSink.json(str(tmp_path / "out")),
        "rows": lambda: Collection().sink(),
        "rows of before": lambda: Collection().sink(),
    }
    sink = sinks.get(place, DiscardSink)
    path = snapshot_of(declared(tmp_path, sink()), tmp_path, form)
    start = {PATH: path, "holdfast.job-id": f"{tmp_path.name}-next"}
    plan = plan_restore(declared(tmp_path, sink(), **start), path)
    assert plan.possible, plan.refusals()
    if place == "position":
        doctored(path, "source", **pickled_list("_positions", DistributionMode.UNION, trace))
        named = "(uid source): operator union list '_positions'"
    elif place == "kept files":
        doctored(path, "sink", **pickled_list("_kept_files", DistributionMode.SPLIT_DISTRIBUTE, trace))
        named = "(uid sink): operator list '_kept_files'"
    elif place == "declared state":
        doctored(path, "kept", **keyed_type(path, "kept", {"kind": "pickled"}))
        named = "(uid kept): value state 'state'"
    else:
        doctored(path, "sink", **collected(trace, 1 if place == "rows" else 0))
        named = "(uid sink): transactions '1 pre-committed'"
    assert named in refused(declared(tmp_path, sink(), **start))
    plan = plan_restore(declared(tmp_path, sink(), **start), path)
    assert not plan.possible and named in "".join(plan.refusals())
    assert not trace.exists()


def test_a_stored_name_of_a_class_imports_nothing(
    in_process: InProcessEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Record
) -> None:
    is_a_case(record_property, *CODE, REFUSED)
    trace = tmp_path / "imported"
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules/hostile_module.py").write_text(
        f"from dataclasses import dataclass\nopen({str(trace)!r}, 'w').close()\n@dataclass\nclass Kept:\n    a: int\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path / "modules"))
    path = snapshot_of(declared(tmp_path, DiscardSink()), tmp_path, "CANONICAL")
    stored = {"kind": "dataclass", "fields": [["a", Types.LONG().to_json()]], "class": "hostile_module:Kept"}
    doctored(path, "kept", **keyed_type(path, "kept", stored))
    start = {PATH: path, "holdfast.job-id": f"{tmp_path.name}-next"}
    assert not plan_restore(declared(tmp_path, DiscardSink(), **start), path).possible
    with pytest.raises(HoldfastError, match="kept/keyed/state/part-0"):
        declared(tmp_path, DiscardSink(), **start).execute_async().get_job_execution_result().result(30)
    assert not trace.exists()


def test_a_snapshot_of_declared_states_is_restored_without_unpickling(
    in_process: InProcessEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection = Collection()
    path = snapshot_of(declared(tmp_path, collection.sink()), tmp_path, "CANONICAL")
    assert sorted(collection.available()) == ROWS

    def unpickle(data: bytes) -> Any:
        raise AssertionError("something was unpickled")

    monkeypatch.setattr(pickling, "loads", unpickle)
    start = {PATH: path, "holdfast.job-id": f"{tmp_path.name}-next"}
    assert plan_restore(declared(tmp_path, DiscardSink(), **start), path).possible
    client = declared(tmp_path, collection.sink(), **start).execute_async()
    while len(client.get_history().epochs) < 2 and client.is_running():
        time.sleep(0.002)
    assert client.is_running()
    client.cancel().result(30)
