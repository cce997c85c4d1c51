"""A job with timers, time to live and an incremental checkpoint every second runs for hours, while its workers, and
once its driver, are killed. Fails where its results are not exact, or where memory, threads, descriptors, files or
sockets grow.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from holdfast.testing.chaos.processes import wait_until
from holdfast.testing.chaos.target import Target
from tests.integration.programs import published
from tests.kit.driver import program
from tests.soak import job
from tests.soak.bounds import broken
from tests.soak.samples import Sample, growths, take

#: What is learnt, compiled and cached at first does not count: so many seconds, in a short run a quarter of it.
_SETTLED = 1800.0
#: Between these parts of the time nothing is killed, so that workers grow old enough to be judged, too.
_CALM = (0.4, 0.9)
_SAMPLES = 720


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    directory = options.directory or Path(tempfile.mkdtemp(prefix="holdfast-soak-"))
    directory.mkdir(parents=True, exist_ok=True)
    seconds = options.hours * 3600
    samples, wrong = soak(directory, seconds, options.kill_every, options.seed)
    (directory / "samples.json").write_bytes(msgspec.json.encode(samples))
    settled = min(_SETTLED, seconds / 4)
    grown = growths(samples, settled)
    for growth in grown:
        print(f"{growth.what:40} {growth.before:10.1f} -> {growth.after:10.1f}   {growth.per_hour:+10.2f} an hour")
    wrong += broken(grown, long=seconds >= 3 * _SETTLED)
    if options.plot is not None:
        from tests.soak.plot import plot

        plot(samples, options.plot)
    print("\n".join(wrong) or "exact, and nothing grew beyond its bounds")
    if wrong:
        print(f"samples and logs are in {directory}")
    elif options.directory is None:
        shutil.rmtree(directory, ignore_errors=True)
    return 1 if wrong else 0


def soak(directory: Path, seconds: float, kill_every: float, seed: int) -> tuple[list[Sample], list[str]]:
    """What was sampled until the job came to its end, and what is wrong with its results."""
    # Whole spans for each of the two halves.
    rows = max(1, int(seconds * job.RATE) // (2 * job.SPAN)) * 2 * job.SPAN
    began = time.time()
    given = [str(directory), str(rows), str(began), json.dumps({"spark.local.dir": str(directory / "tmp")})]
    folders = {name: directory / name for name in ("checkpoints", "local", "tmp", "out")}
    samples: list[Sample] = []
    (directory / "logs").mkdir()
    with Target(program("soak", Path(job.__file__), given, directory), directory / "logs") as target:
        kills = _Kills(target, seconds, kill_every, random.Random(seed))
        while target.driver.code is None:
            time.sleep(seconds / _SAMPLES)
            passed = time.time() - began
            kills.due(passed)
            samples.append(take(passed, target.driver.pid, folders))
            if passed > seconds * 3 + 600:
                return samples, [f"the job did not end within {passed:.0f} s"]
        code, output = target.driver.wait(60), target.driver.output
    wrong = [] if code == 0 else [f"the driver ended with {code}:\n{output[-3000:]}"]
    print(f"{rows:,} rows, {kills.workers} workers and {kills.drivers} drivers killed, seed {seed}", flush=True)
    if sorted(published(directory / "out")) != job.expected(rows):
        wrong.append(f"the results are not those of {rows} rows")
    return samples, wrong


class _Kills:
    """A worker every so often, and the driver once, when a fifth of the time is over. A time without any in between."""

    def __init__(self, target: Target, seconds: float, every: float, chance: random.Random) -> None:
        self._target = target
        self._driver_at = seconds / 5
        self._every = every
        self._calm = (_CALM[0] * seconds, _CALM[1] * seconds)
        self._next = every
        self._chance = chance
        self.workers = self.drivers = 0

    def due(self, passed: float) -> None:
        if not self.drivers and passed >= self._driver_at:
            self._target.driver.kill()
            self._target.start_driver()
            self.drivers += 1
        elif passed >= self._next and not self._calm[0] <= passed < self._calm[1]:
            self._next = passed + self._every * self._chance.uniform(0.5, 1.5)
            workers = wait_until(lambda: self._target.workers() or None, 300, "Python workers")
            self.workers += self._chance.choice(workers).kill()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--hours", type=float, default=2.0)
    parser.add_argument("--kill-every", type=float, default=240.0, help="seconds between two killed workers")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--directory", type=Path, help="where files and logs of the job stay")
    parser.add_argument("--plot", type=Path, help="a PNG file for the curves")
    return parser


if __name__ == "__main__":
    sys.exit(main())
