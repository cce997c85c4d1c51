"""Writes what a job with file sinks leaves that dies between a checkpoint and its commit, with the version of Holdfast
that is imported: a fixture for later versions.

    PYTHONPATH=<worktree of that commit>/src:. python -m tests.job.write_open_files <file.zip>
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from holdfast.common.job_client import JobClient
from holdfast.datastream.connectors.file_system import FileSink, RollingPolicy
from holdfast.testing import InProcessEngine
from tests.job.counting import EPOCHS, WatchedSink, counting, settings

#: The checkpoint of this epoch is there, and the transactions of the epoch are not committed.
EPOCH = 3
#: The directory of the process: paths of sinks are in checkpoints, and the fixture is unpacked anywhere.
HERE = Path("/proc/self/cwd")
NEVER = RollingPolicy.default_rolling_policy(1 << 30, 1_000_000_000, 1_000_000_000)


def start(plain: FileSink, local: Path, **changes: str) -> JobClient:
    """Counts into ``plain``, and into a sink whose files wait until the job has ended."""
    waiting = FileSink.json(str(HERE / "waiting")).partition_by("f0").with_rolling_policy(NEVER)
    given = {
        "holdfast.state.local-dir": str(local),
        # All of a checkpoint is in its metadata then.
        "execution.checkpointing.data-inline-threshold": "1 mb",
        "restart-strategy.type": "none",
        **changes,
    }
    return counting(settings(HERE, **given), EPOCHS, plain, waiting)


def write(target: Path, local: Path) -> None:
    """Copy the directory of the process at the moment at which a driver that dies would leave it."""
    commits, watched = 0, WatchedSink.before

    def before(place: int, recovering: bool) -> None:
        nonlocal commits
        commits += place == 0
        if commits == EPOCH and not target.exists():
            shutil.copytree(".", target)

    WatchedSink.before = staticmethod(before)
    try:
        with InProcessEngine().installed():
            start(WatchedSink(HERE / "plain"), local).get_job_execution_result().result(60)
    finally:
        WatchedSink.before = staticmethod(watched)


def main(packed: Path) -> None:
    packed = packed.absolute()
    with tempfile.TemporaryDirectory() as place:
        os.mkdir(f"{place}/job")
        os.chdir(f"{place}/job")
        write(Path(place, "left"), Path(place, "local"))
        shutil.make_archive(str(packed.with_suffix("")), "zip", f"{place}/left")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
