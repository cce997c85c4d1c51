"""Disks that become full while a job runs: ``python -m tests.hostile.full_disks SEED CASES DIRECTORY``, in a mount
namespace of its own, prints an outcome a line.

A disk is a file system in memory for one of the job's three places. It is filled before an epoch, and in half of the
cases somebody makes room again a few epochs later. The job goes on by itself, or stops and says that the disk is full;
when there is room again the next driver goes on. Either way every row comes out once.
"""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import msgspec

from holdfast.runtime.epoch import EpochSpec
from holdfast.testing.in_process import InProcessEngine
from tests.hostile import job
from tests.hostile.forked import in_fork
from tests.hostile.outcome import EXACT, REFUSED, Outcome
from tests.job.counting import staged

PLACES = {"local": "local directory", "chk": "checkpoint directory", "out": "output"}
BACKENDS = ("heap", "lmdb", "rocksdb")
_SIZE = 64 << 20
_PAGE = 4096
_SAYS_SO = ("No space left on device", "disk is full", "is full")


class Disk:
    """A file system of its own."""

    def __init__(self, path: Path) -> None:
        path.mkdir(mode=0o700)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={_SIZE},mode=0700", "none", str(path)], check=True)
        self._path = path
        self._ballast = path / ".ballast"

    def fill(self, left: int) -> None:
        """But for ``left`` bytes."""
        with suppress(OSError), open(self._ballast, "wb", buffering=0) as file:
            while file.write(bytes(1 << 20)) == 1 << 20:
                pass
        with suppress(OSError), open(self._ballast, "ab", buffering=0) as file:
            while file.write(bytes(_PAGE)):
                pass
        with open(self._ballast, "r+b") as file:
            file.truncate(self._ballast.stat().st_size - left)

    def make_room(self) -> None:
        self._ballast.unlink(missing_ok=True)

    def unmount(self) -> None:
        subprocess.run(["umount", "--lazy", str(self._path)], check=True)


def case(number: int, backend: str, place: str, chosen: random.Random, directory: Path) -> Outcome:
    directory.mkdir(mode=0o700)
    disk = Disk(directory / place)
    left, full, room = chosen.choice((0, 1, 3, 10)) * _PAGE, chosen.randint(3, 8), chosen.choice((0, 2, 9))
    how = f"full from epoch {full} on" + (f", for {room} epochs" if room else "")

    def run(fills: bool) -> None:
        begun = 0

        def before(spec: EpochSpec) -> None:
            nonlocal begun
            begun += 1
            if begun == full:
                disk.fill(left)
            elif room and begun == full + room:
                disk.make_room()

        with InProcessEngine(before_epoch=before if fills else lambda spec: None).installed():
            job.start(directory, job.settings(directory, backend)).get_job_execution_result().result(60)

    ended = in_fork(lambda: run(True), directory / "log")
    verdict = EXACT
    if ended.hung or ended.code not in (0, 1):
        verdict = "hangs" if ended.hung else f"died of signal {-ended.code}"
    elif ended.code == 1:
        reason = ended.told[ended.told.rfind("Traceback (most recent call last)") :]
        says = "holdfast.errors." in reason and any(words in reason for words in _SAYS_SO)
        verdict = REFUSED if says else "stopped without its reason"
        disk.make_room()
        again = in_fork(lambda: run(False), directory / "log-again")
        if again.code != 0:
            verdict, ended = f"does not go on with room again ({again.code})", again
    if verdict in (EXACT, REFUSED) and job.published(directory) != job.expected():
        verdict = "wrong rows"
    if verdict == EXACT and staged(directory / "out"):
        verdict = "staged files are left"
    disk.unmount()
    told = "" if verdict in (EXACT, REFUSED) else ended.told
    return Outcome("full disks", PLACES[place], backend, how, verdict, told)


def main(seed: int, cases: int, root: Path) -> None:
    combinations = itertools.cycle(itertools.product(BACKENDS, PLACES))
    for number, (backend, place) in zip(range(cases), combinations, strict=False):
        chosen = random.Random(f"{seed} {number}")
        print(msgspec.json.encode(case(number, backend, place, chosen, root / f"disk-{number}")).decode(), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
