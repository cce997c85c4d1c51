"""Whole jobs on RocksDB whose attempts fail, with and without what is left on the host."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.datastream.connectors.file_system import FileSink
from holdfast.errors import StoreVersionError
from holdfast.runtime.epoch import EpochSpec
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import published
from tests.job.counting import counting, counts_of, settings

EPOCHS = [[(row * 7 % 31, row) for row in range(first, first + 20)] for first in range(0, 600, 20)]


@pytest.mark.parametrize("strategy", ["NATIVE", "CHANGED_KEYS"])
@pytest.mark.parametrize("from_local", ["true", "false"])
def test_rocksdb_jobs_whose_attempts_fail(
    in_process: InProcessEngine, tmp_path: Path, strategy: str, from_local: str
) -> None:
    """A checkpoint in every epoch, and a failure after some."""
    seen: list[set[str]] = []

    def before_epoch(spec: EpochSpec) -> None:
        done = sum(attempt == spec.attempt for attempt, _ in in_process.epochs)
        seen.append({path.name for path in (tmp_path / "chk").rglob("*.sst")})
        if spec.attempt <= 4 and done == 3 + spec.attempt:
            raise StoreVersionError("state is not on this host")

    in_process.before_epoch = before_epoch
    given = {
        "state.backend.type": "rocksdb",
        "state.backend.rocksdb.snapshot-strategy": strategy,
        "execution.state-recovery.from-local": from_local,
        "execution.checkpointing.data-inline-threshold": "0 b",
    }
    client = counting(settings(tmp_path, **given), EPOCHS, FileSink.json(str(tmp_path / "out")))
    client.get_job_execution_result().result()
    assert client.get_history().restarts == 4
    assert published(tmp_path / "out") == counts_of(EPOCHS)
    assert any(seen) == (strategy == "NATIVE")
    left = [path for path in (tmp_path / "chk" / "job").rglob("*") if path.parent.name in ("shared", "chk")]
    assert left == [], "a job that has ended leaves no files of checkpoints"
