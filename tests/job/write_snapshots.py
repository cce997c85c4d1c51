"""Writes snapshots of ``every_state_job`` with the version of Holdfast that is imported: fixtures for later versions.

    PYTHONPATH=<worktree of that commit>/src:. python -m tests.job.write_snapshots <directory> <commit>
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

import holdfast
from holdfast.common import JobClient
from holdfast.common.job_client import SavepointFormat
from holdfast.connectors.discard import DiscardSink
from holdfast.testing import InProcessEngine
from tests.job import every_state_job as job

BACKENDS = ("heap", "lmdb", "rocksdb")
FORMS = ("checkpoint", *(form.name.lower() for form in SavepointFormat))
#: The snapshots are those of this epoch: half of the sales have been read.
EPOCH = job.EPOCHS // 2


def write(directory: Path, backend: str, form: str) -> tuple[Path, list[tuple[str, str]]]:
    """The folder of a snapshot, and the results that were given before it."""
    engine = InProcessEngine(last_checkpoint=EPOCH)
    given: dict[int, int] = {}
    started: list[JobClient] = []
    told: list[Any] = []

    def before(spec: Any) -> None:
        if spec.epoch == EPOCH and form != "checkpoint":
            while not started:
                time.sleep(0.001)
            told.append(started[0].stop_with_savepoint(False, str(directory), SavepointFormat[form.upper()]))
        if spec.epoch > EPOCH:
            engine.control.cancel()

    def after(spec: Any) -> None:
        given[spec.epoch] = len(job.GIVEN)

    engine.before_epoch, engine.after_epoch = before, after
    job.GIVEN.clear()
    # All of a checkpoint is in its metadata then, which is not bound to a place.
    settings = {"state.backend.type": backend, "execution.checkpointing.data-inline-threshold": "1 mb"}
    with engine.installed():
        started.append(job.start(directory, DiscardSink(), **settings))
        try:
            started[0].get_job_execution_result().result(60)
        except Exception as error:
            print(f"{backend} {form}: the job ended with {type(error).__name__}")
    path = Path(told[0].result(60)) if told else next((directory / "chk/job").glob("chk-*"))
    metadata = (path / "_metadata").read_text().partition("\n")[2]
    return path, job.GIVEN[: given[json.loads(metadata)["epoch"]]]


def pack(target: Path, backend: str, form: str, directory: Path) -> None:
    """One file with a snapshot and ``given.json``, the results before it."""
    path, given = write(directory, backend, form)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("given.json", json.dumps(given))
        for file in sorted(each for each in path.rglob("*") if each.is_file()):
            packed.write(file, f"snapshot/{file.relative_to(path)}")


def main(target: Path, commit: str) -> None:
    target.mkdir(parents=True)
    for backend in BACKENDS:
        for form in FORMS:
            with tempfile.TemporaryDirectory() as directory:
                pack(target / f"{backend}-{form}.zip", backend, form, Path(directory))
    facts = {"commit": commit, "version": holdfast.__version__, "epochs": EPOCH}
    (target / "written-by.json").write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
