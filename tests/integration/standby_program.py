"""A driver of a counting job that may have to wait for its turn. It runs without Spark: ``python standby_program.py
DIRECTORY SETTINGS [endless]``, with settings as JSON. Without an end of its input it runs until somebody ends it.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from pathlib import Path

from holdfast.runtime.epoch import EpochSpec
from holdfast.testing.in_process import InProcessEngine
from tests.job.counting import WatchedSink, counting, settings

#: Rows of seven keys for so many epochs, each of which takes a moment.
SCRIPT = [[(row % 7, row) for row in range(first, first + 5)] for first in range(0, 300, 5)]
_EPOCH_SECONDS = 0.02


def tell_epoch(spec: EpochSpec) -> None:
    print(f"epoch {spec.epoch} of attempt {spec.attempt}")
    time.sleep(_EPOCH_SECONDS)


def tell_commit(place: int, recovering: bool) -> None:
    print("commit of a restored" if recovering else "commit")


def main(directory: Path, given: dict[str, str], ends: bool) -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s", stream=sys.stdout)
    logging.getLogger("kazoo").setLevel(logging.ERROR)
    WatchedSink.before = staticmethod(tell_commit)
    with InProcessEngine(step=20, before_epoch=tell_epoch).installed():
        client = counting({**settings(directory), **given}, SCRIPT, WatchedSink(directory / "out"), ends=ends)
        result = client.get_job_execution_result().result()
    print("ended", client.get_job_status().result().name, result.get_savepoint_path())


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]), ends=sys.argv[3:] != ["endless"])
