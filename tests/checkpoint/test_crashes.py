"""Real processes that are killed, and files that cannot be written to their end."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.checkpoint.samples import DictJob

LOOP = """
import sys
from pathlib import Path
from tests.checkpoint.samples import DictJob
job = DictJob(Path(sys.argv[1]), num_retained=3, inline_threshold=0)
print("started", flush=True)
while True:
    epoch = job.epoch + 1
    completed = job.checkpoint([(0, f"k{epoch % 7}", epoch), (1, f"k{epoch % 5}", epoch)])
    job.coordinator.begin_commit(completed.checkpoint_id)
    job.coordinator.committed(completed.checkpoint_id)
    print(completed.checkpoint_id, flush=True)
"""

FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from holdfast.checkpoint.policy import CheckpointPolicy
from holdfast.checkpoint.reasons import CheckpointFailureReason
from holdfast.errors import StorageError
from tests.checkpoint.samples import DictJob

policy = CheckpointPolicy(tolerable_failures=1, incremental=False)
job = DictJob(Path(sys.argv[1]), policy, inline_threshold=int(sys.argv[2]))
job.checkpoint([(0, "small", 1)])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
request = job.run_epoch([(0, f"large-{number}", number) for number in range(1000)], checkpoint=True)
try:
    job.acknowledge_all(request)
    assert job.coordinator.complete(request.checkpoint_id) is None
except StorageError as error:
    job.coordinator.abort(request.checkpoint_id, CheckpointFailureReason.CHECKPOINT_ASYNC_EXCEPTION, str(error))
failed = job.coordinator.statistics.latest_failed
print(failed.failure_reason.name, failed.failure_message)
assert job.coordinator.job_failure is None
job.checkpoint([(0, f"large-{number}", None) for number in range(1000)])
print(job.state)
"""


def run(script: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])},
    )


def expected(epoch: int) -> list[dict[str, int]]:
    """The state after an epoch, by computation."""
    state: list[dict[str, int]] = [{}, {}]
    for number in range(1, epoch + 1):
        state[0][f"k{number % 7}"] = number
        state[1][f"k{number % 5}"] = number
    return state


def test_killed_at_any_moment_every_visible_checkpoint_is_whole(tmp_path: Path) -> None:
    chance = random.Random(7)
    reached = 0
    for _ in range(6):
        process = run(LOOP, tmp_path)
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        time.sleep(chance.uniform(0.01, 0.4))
        os.kill(process.pid, signal.SIGKILL)
        output, errors = process.communicate()
        assert process.returncode == -signal.SIGKILL, errors
        job = DictJob(tmp_path, num_retained=3)
        for kept in job.store.all():
            job.storage.verify(kept.metadata)
            assert job.read(kept.metadata, job.storage.reader()) == expected(kept.metadata.epoch)
        last = max((int(line) for line in output.split()), default=reached)
        latest = job.store.latest()
        found = latest.checkpoint_id if latest is not None else 0
        assert found >= last >= reached, "a checkpoint that was reported complete is gone"
        reached = found
        assert not any("holdfast-tmp" in path for path in job.paths())
    assert reached > 5


@pytest.mark.parametrize(
    ("inline_threshold", "reason"), [(0, "CHECKPOINT_ASYNC_EXCEPTION"), (10**6, "FINALIZE_CHECKPOINT_FAILURE")]
)
def test_a_full_disk_costs_one_checkpoint(tmp_path: Path, inline_threshold: int, reason: str) -> None:
    """A limit on the size of files stands for the full disk: write(2) fails within a snapshot, or within metadata."""
    process = run(FULL_DISK, tmp_path, inline_threshold)
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    assert output.startswith(reason)
    assert "raise the limit or choose another directory" in output
    assert output.endswith("[{'small': 1}, {}]\n")
    job = DictJob(tmp_path, inline_threshold=inline_threshold)
    assert job.state == [{"small": 1}, {}]
    assert job.paths() == {path for kept in job.store.all() for path in kept.files()} | {"chk-3/_metadata"}
