"""Snapshots that earlier versions have written, of every backend and kind of state, are restored by this one."""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from holdfast.datastream.connectors.file_system import FileSink
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import published
from tests.job import every_state_job as job
from tests.job.every_state_oracle import expected
from tests.job.write_snapshots import BACKENDS, EPOCH, FORMS, pack

FIXTURES = Path(__file__).parents[1] / "fixtures/before-0.2"
#: One folder for each commit whose snapshots are kept.
COMMITS = sorted(path.parent.name for path in FIXTURES.glob("*/written-by.json"))
OTHER = {"heap": "lmdb", "lmdb": "rocksdb", "rocksdb": "heap"}


def goes_on(packed: Path, directory: Path, backend: str, parallelism: int, engine: InProcessEngine) -> None:
    """A job that starts from the snapshot and reads all that is left gives what is missing of all results."""
    with zipfile.ZipFile(packed) as file:
        file.extractall(directory)
    given = Counter((name, row) for name, row in json.loads((directory / "given.json").read_text()))
    engine.now = job.DUE + job.SHORT
    settings = {
        "holdfast.job-id": "next",
        "execution.state-recovery.path": str(directory / "snapshot"),
        "state.backend.type": backend,
    }
    client = job.start(directory, FileSink.json(str(directory / "out")), parallelism, **settings)
    client.get_job_execution_result().result(60)
    assert given + Counter(published(directory / "out")) == expected(restored_behind=EPOCH)


def test_what_a_job_gives_that_nothing_disturbs(in_process: InProcessEngine, tmp_path: Path) -> None:
    job.start(tmp_path, FileSink.json(str(tmp_path / "out"))).get_job_execution_result().result(60)
    assert Counter(published(tmp_path / "out")) == expected(restored_behind=None)


@pytest.mark.parametrize("parallelism", [2, 3])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("commit", COMMITS)
def test_it_is_restored(
    in_process: InProcessEngine, tmp_path: Path, commit: str, backend: str, form: str, parallelism: int
) -> None:
    goes_on(FIXTURES / commit / f"{backend}-{form}.zip", tmp_path, backend, parallelism, in_process)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("commit", COMMITS)
def test_another_backend_restores_it(
    in_process: InProcessEngine, tmp_path: Path, commit: str, backend: str, form: str
) -> None:
    goes_on(FIXTURES / commit / f"{backend}-{form}.zip", tmp_path, OTHER[backend], 1, in_process)


@pytest.mark.parametrize("form", FORMS)
def test_what_this_version_writes_it_restores(in_process: InProcessEngine, tmp_path: Path, form: str) -> None:
    """And what writes the fixtures goes on to work."""
    pack(tmp_path / "packed.zip", "rocksdb", form, tmp_path / "before")
    goes_on(tmp_path / "packed.zip", tmp_path / "behind", "rocksdb", 3, in_process)


#: Of the program's states, by uid and name, every kind that there is.
KINDS = {
    "value": {("states", "seen"), ("sum", "_reduce"), ("sessions", "merging-window-set")},
    "list": {("states", "prices"), ("states", "long list"), ("kept", "window-contents")},
    "map": {("states", "times"), ("states", "long map")},
    "reducing": {("states", "greatest"), ("greatest", "window-contents"), ("counted", "trigger/count")},
    "aggregating": {("states", "mean"), ("figures", "window-contents"), ("sessions", "window-contents")},
    "timers": {("states", "_timers/event_time/user"), ("states", "_timers/processing_time/user")},
    "split_distribute": {("split", "mine")},
    "union": {("union", "all"), ("numbers", "_positions"), ("sales", "_positions")},
    "broadcast": {("scaled", "factors")},
}


@pytest.mark.parametrize("commit", COMMITS)
def test_every_kind_of_state_is_in_them(commit: str) -> None:
    facts = json.loads((FIXTURES / commit / "written-by.json").read_text())
    assert facts["commit"] == commit and facts["version"] == "0.1.0" and facts["epochs"] == EPOCH
    with zipfile.ZipFile(FIXTURES / commit / "heap-canonical.zip") as file:
        metadata = json.loads(file.read("snapshot/_metadata").partition(b"\n")[2])
    found: dict[str, set[tuple[str, str]]] = {}
    for state in metadata["properties"]["states"]:
        if state["rows"]:
            found.setdefault(state["kind"], set()).add((state["uid"], state["state"]))
    assert {kind for kind in found if not kind.startswith("raw")} == KINDS.keys()
    assert all(found[kind] >= states for kind, states in KINDS.items())
    raw = [task for each in metadata["operators"] if each["uid"] == "raw" for task in each["subtasks"]]
    assert any(task["raw_keyed"] for task in raw) and any(task["raw_operator"] for task in raw)
