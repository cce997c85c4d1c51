"""Jobs whose files are damaged at moments at which nobody looks after them, and how they go on.

``driver``: the driver is killed, a file is damaged, and the next driver starts. ``worker``: a worker is lost, a file is
damaged, and the next attempt begins. ``savepoint``: a file of a savepoint is damaged, from which a job then starts.
"""

from __future__ import annotations

import json
import random
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from holdfast import failpoints
from holdfast.runtime.epoch import EpochSpec
from holdfast.runtime.live_task import forget_live_tasks
from holdfast.state.handles import SavepointFormat
from holdfast.testing.in_process import InProcessEngine
from tests.hostile import job
from tests.hostile.damage import DAMAGES, Damaged, by_kind
from tests.hostile.forked import Ended, in_fork
from tests.hostile.outcome import EXACT, REFUSED, Outcome
from tests.job.counting import staged
from tests.kit.faults import FaultPlan

#: By the folder below the job's.
PLACES = {
    "chk": "checkpoint directory",
    "local": "local directory",
    "out": "staged output",
    "savepoints": "savepoint",
}
_TRIALS = {"driver": "damage, driver killed", "worker": "damage, worker lost", "savepoint": "damage, savepoint"}
#: Where a driver dies, and at which hit.
MOMENTS = {
    "task.before-commit": 31,
    "checkpoint.before-metadata": 6,
    "checkpoint.after-metadata": 7,
    "driver.commit-begun": 6,
    "sink.before-commit": 2,
}


@dataclass(frozen=True)
class Story:
    """One backend, and what happens to the job before its file is damaged. ``cases``: of a thousand."""

    backend: str
    family: str
    moment: str
    cases: int

    @property
    def name(self) -> str:
        return f"{self.family} {self.moment}, {self.backend}"


def stories() -> list[Story]:
    backends = ("heap", "lmdb", "rocksdb")
    return [
        *(Story(backend, "driver", moment, 48) for backend in backends for moment in MOMENTS),
        *(Story(backend, "worker", "lost", 48) for backend in backends),
        *(Story(backend, "savepoint", str(form), 24) for backend in backends for form in SavepointFormat),
    ]


class Stage:
    """The directory of a story's job, as it was left before the damage; every case finds it like that."""

    def __init__(self, story: Story, root: Path) -> None:
        self.story = story
        self.directory = root / "job"
        self._root, self._copy = root, root / "copy"
        root.mkdir(parents=True)
        self.directory.mkdir(mode=0o700)
        if story.family == "driver":
            faults = FaultPlan(root / "faults")
            faults.add(story.moment, "kill", hit=MOMENTS[story.moment])
            ended = in_fork(lambda: self._run(faults=faults), root / "log")
            assert ended.code == -9, ended.told
        elif story.family == "savepoint":
            ended = in_fork(self._stop_with_savepoint, root / "log")
            assert ended.code == 0, ended.told
        _copy(self.directory, self._copy)

    def cases(self, count: int, seed: int) -> Iterator[Outcome]:
        """Cases of all kinds of files in turn, with each kind of damage in turn."""
        chosen = random.Random(f"{seed} {self.story.name}")
        hows = list(DAMAGES)
        chosen.shuffle(hows)
        for number in range(count):
            shutil.rmtree(self.directory)
            _copy(self._copy, self.directory)
            yield self._case(number, hows, chosen)

    def _case(self, number: int, hows: list[str], chosen: random.Random) -> Outcome:
        record = self._root / "damaged.json"
        record.unlink(missing_ok=True)
        if self.story.family == "worker":
            first = in_fork(lambda: self._lose_worker(number, hows, chosen, record), self._root / "log")
            if not record.exists():
                return self._outcome("local", "-", "nothing was damaged", first.told)
            file, how, path = json.loads(record.read_text())
            # What is local ends with its host: there is nothing to mend.
            verdict, told = self._judge(first, Path(path), None)
        else:
            damaged, file = self._damage(self._files(), number, hows, chosen)
            how = damaged.how
            first = in_fork(self._run, self._root / "log")
            verdict, told = self._judge(first, damaged.path, damaged)
        return self._outcome(file, how, verdict, told)

    def _outcome(self, file: str, how: str, verdict: str, told: str) -> Outcome:
        story, place = self.story, PLACES[file.split("/")[0]]
        return Outcome(_TRIALS[story.family], place, story.backend, f"{story.moment}, {how}: {file}", verdict, told)

    def _judge(self, ended: Ended, path: Path, damaged: Damaged | None) -> tuple[str, str]:
        if ended.code == 0:
            return self._exact(ended)
        if ended.hung or ended.code != 1:
            return ("hangs" if ended.hung else f"died of signal {-ended.code}"), ended.told
        reason = ended.told[ended.told.rfind("Traceback (most recent call last)") :]
        if "holdfast.errors." not in reason or path.name not in reason:
            return "refused without its name", ended.told
        if damaged is not None:
            damaged.mend()
        again = in_fork(self._run, self._root / "log-again")
        verdict, told = self._exact(again)
        return (REFUSED, "") if verdict == EXACT else (f"refused, and behind it: {verdict}", ended.told + told)

    def _exact(self, ended: Ended) -> tuple[str, str]:
        if ended.code != 0:
            return f"does not go on when the file is mended ({ended.code})", ended.told
        rows, expected = job.published(self.directory), job.expected()
        if rows != expected:
            lost, more = len(set(expected) - set(rows)), len(rows) - len(expected)
            return f"wrong rows ({lost} lost, {more} more)", ended.told
        left = staged(self.directory / "out")
        return (EXACT, "") if not left else (f"{len(left)} staged files are left", ended.told)

    def _files(self) -> list[Path]:
        """What the story is about: not what was published, which is not Holdfast's any more."""
        if self.story.family == "savepoint":
            places = [self.directory / "savepoints"]
        else:
            places = [self.directory / "chk", self.directory / "local", self.directory / "out" / "_holdfast_staging"]
        return [path for place in places for path in place.rglob("*") if path.is_file() and not path.is_symlink()]

    def _damage(self, files: list[Path], number: int, hows: list[str], chosen: random.Random) -> tuple[Damaged, str]:
        kinds = by_kind(files, self.directory)
        names = sorted(kinds)
        random.Random(self.story.name).shuffle(names)
        name = names[number % len(names)]
        how = hows[(number // len(names) + number) % len(hows)]
        return Damaged(chosen.choice(kinds[name]), how, kinds[name], chosen), name

    def _settings(self) -> dict[str, str]:
        given = job.settings(self.directory, self.story.backend)
        if self.story.family == "savepoint":
            given["holdfast.job-id"] = f"{job.JOB}-next"
            given["execution.state-recovery.path"] = str(next((self.directory / "savepoints").iterdir()))
        return given

    def _run(self, faults: FaultPlan | None = None) -> None:
        """In a process of its own: the job to its end."""
        if faults is not None:
            failpoints.install(faults.path)
        with InProcessEngine().installed():
            job.start(self.directory, self._settings()).get_job_execution_result().result(60)

    def _stop_with_savepoint(self) -> None:
        with InProcessEngine().installed():
            given = job.settings(self.directory, self.story.backend)
            client = job.start(self.directory, given, ends=False)
            while len(client.get_history().epochs) < 5:
                time.sleep(0.001)
            path = str(self.directory / "savepoints")
            client.stop_with_savepoint(False, path, SavepointFormat(self.story.moment)).result(60)

    def _lose_worker(self, number: int, hows: list[str], chosen: random.Random, record: Path) -> None:
        """The job to its end, in this process. Once its stores are closed, a file is damaged and the epoch fails."""
        at = chosen.randint(4, 8)

        def lose(spec: EpochSpec) -> None:
            if spec.epoch != at or record.exists():
                return
            forget_live_tasks(job.JOB, before_attempt=1 << 30)
            damaged, name = self._damage(self._local_files(), number, hows, chosen)
            record.write_text(json.dumps([name, damaged.how, str(damaged.path)]))
            raise ValueError("the worker is lost")

        with InProcessEngine(before_epoch=lose).installed():
            job.start(self.directory, self._settings()).get_job_execution_result().result(60)

    def _local_files(self) -> list[Path]:
        return [path for path in (self.directory / "local").rglob("*") if path.is_file() and not path.is_symlink()]


def _copy(source: Path, target: Path) -> None:
    """Without the pipe by which processes of a host ask for a store: who reads it is gone."""

    def pipes(folder: str, names: list[str]) -> list[str]:
        return [name for name in names if Path(folder, name).is_fifo()]

    shutil.copytree(source, target, symlinks=True, ignore=pipes)
