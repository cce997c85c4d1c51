"""The audited job with all its files in one storage, from any part of its life to the next. Runs as a driver program.

The stages, each a driver of its own under the same job id: two workers are killed, then the driver, between a
checkpoint and the commit of its sinks; the next driver goes on and stops with a savepoint; the last one goes on from
there with another parallelism.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from pathlib import Path

from holdfast.storage.filesystem import Storage
from tests.integration.audited_job import audit, program
from tests.kit.driver import DriverProgram
from tests.kit.faults import FaultPlan

ROWS, KEYS = 4_500, 40
_SECONDS = 240


def run_stages(uri: str, directory: Path) -> None:
    """Take a job through its life with its files below ``uri``; what it published must be exact."""
    faults = FaultPlan(directory / "faults")
    # One kill an attempt. Ten subtasks upload for a checkpoint: in attempt 2 one is complete when the second begins.
    faults.add("task.before-commit", "kill", hit=20, attempt=1)
    faults.add("task.uploading", "kill", hit=14, attempt=2)
    faults.add("checkpoint.after-metadata", "kill", hit=2, attempt=3)
    with _driver(uri, directory, "killed", faults) as killed:
        assert killed.wait(_SECONDS) == -9, killed.output[-4000:]
    assert not faults.not_reached()
    assert "Attempt 3 of job audited starts from checkpoint" in killed.output
    storage = Storage.for_uri(uri)
    assert storage.exists("checkpoints/audited/lock"), "the driver was killed, and could not let go of its lock"

    with _driver(uri, directory, "stopped", stop=True) as stopped:
        assert stopped.wait(_SECONDS) == 0, stopped.output[-4000:]
    assert "starts from checkpoint" in stopped.output
    savepoint = stopped.output.rpartition("SAVEPOINT ")[2].split()[0]
    assert savepoint.startswith(f"{uri}/savepoints/")
    assert 0 < _published(storage) < ROWS

    more = {"parallelism.default": "3", "execution.state-recovery.path": savepoint}
    with _driver(uri, directory, "rescaled", **more) as rescaled:
        assert rescaled.wait(_SECONDS) == 0, rescaled.output[-4000:]
    assert not storage.exists("checkpoints/audited/lock")
    _fetch(storage, directory / "results")
    audit(directory / "results", ROWS, KEYS)


def _driver(
    uri: str, directory: Path, name: str, faults: FaultPlan | None = None, stop: bool = False, **settings: str
) -> DriverProgram:
    given = {
        "spark.master": "local[3]",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "holdfast.state.local-dir": str(directory / "local"),
        "execution.checkpointing.interval": "50 ms",
        "execution.checkpointing.data-inline-threshold": "0",
        **settings,
    }
    arguments = [uri, json.dumps({"settings": given, "stop": stop})]
    return DriverProgram(Path(__file__), arguments, directory / f"{name}.log", faults.environment if faults else None)


def _published(storage: Storage) -> int:
    files = [entry.path for entry in storage.list("first") if not entry.is_dir and entry.name[0] not in "._"]
    return sum(storage.read(path).count(b"\n") for path in files)


def _fetch(storage: Storage, target: Path) -> None:
    """All files of the sinks, unfinished ones too."""
    for sink in ("first", "second"):
        for entry in storage.list(sink, recursive=True, temporaries=True):
            if not entry.is_dir:
                path = target / entry.path
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(storage.read(entry.path))


def _main(uri: str, settings: dict[str, str], stop: bool) -> None:
    client = program(uri, settings, ROWS, KEYS, largest=200).execute_async("audited")
    if stop:
        storage = Storage.for_uri(uri)
        while client.get_job_status().result().name != "RUNNING":
            time.sleep(0.1)
        # The rows of the checkpoint that it starts from were published with the start.
        before = storage.list("first")
        while storage.list("first") == before:
            time.sleep(0.1)
        print("SAVEPOINT", client.stop_with_savepoint(False, f"{uri}/savepoints").result(), flush=True)
    else:
        client.get_job_execution_result().result()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    logging.getLogger("py4j").setLevel(logging.ERROR)
    _main(sys.argv[1], **json.loads(sys.argv[2]))
