"""What the processes and the files of a job amount to, again and again, and how it grows."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from holdfast.testing.chaos.processes import Process, descendants

_MEGABYTE = 1 << 20
_HOUR = 3600.0
#: A process that was seen for less is not judged by: a quarter of it has to be longer than a restart.
_FEWEST = 24


class ProcessFigures(msgspec.Struct, frozen=True):
    megabytes: float
    threads: int
    descriptors: int


class Sample(msgspec.Struct, frozen=True):
    """One moment, in seconds since the beginning."""

    seconds: float
    #: By role and process id.
    processes: dict[str, ProcessFigures]
    #: Megabytes, and numbers of files, of each folder.
    sizes: dict[str, float]
    files: dict[str, int]
    sockets: int


def take(seconds: float, driver: int, folders: Mapping[str, Path]) -> Sample:
    """A sample of the driver's process, all below it, and these folders."""
    found = [process for process in (Process.read(driver), *descendants(driver)) if process is not None]
    figures = {f"{_role(process, driver)} {process.pid}": _figures(process) for process in found}
    entries = {name: _files(folder) for name, folder in folders.items()}
    return Sample(
        seconds,
        {name: each for name, each in figures.items() if each is not None},
        {name: sum(size for _, size in files) / _MEGABYTE for name, files in entries.items()},
        {name: len(files) for name, files in entries.items()},
        sum(path.endswith(".sock") for files in entries.values() for path, _ in files),
    )


def _role(process: Process, driver: int) -> str:
    if process.pid == driver:
        return "driver"
    if process.name == "java":
        return "jvm"
    return "worker" if any("daemon" in word for word in process.command) else "other"


def _figures(process: Process) -> ProcessFigures | None:
    """None when it has ended meanwhile."""
    with suppress(OSError, ValueError, KeyError):
        status = Path(f"/proc/{process.pid}/status").read_text()
        told = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
        descriptors = len(os.listdir(f"/proc/{process.pid}/fd"))
        return ProcessFigures(int(told["VmRSS"].split()[0]) / 1024, int(told["Threads"]), descriptors)
    return None


def _files(folder: Path) -> list[tuple[str, int]]:
    found = []
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                found.append((name, os.lstat(os.path.join(place, name)).st_size))
    return found


class Growth(msgspec.Struct, frozen=True):
    """How something went up behind the time in which it may: by so much an hour, from one mean to another."""

    what: str
    per_hour: float
    before: float
    after: float


def growths(samples: Sequence[Sample], settled: float) -> list[Growth]:
    """The growth of all that is measured, behind ``settled`` seconds of the job and of each process."""
    late = [sample for sample in samples if sample.seconds >= settled]
    found = []
    for name in dict.fromkeys(name for sample in samples for name in sample.processes):
        born = next(sample.seconds for sample in samples if name in sample.processes)
        grown_up = [sample for sample in late if sample.seconds >= born + settled]
        for figure in ("megabytes", "threads", "descriptors"):
            found.append(_growth(f"{figure} of {name}", grown_up, _of_process(name, figure)))
    for name in samples[-1].sizes:
        found.append(_growth(f"megabytes in {name}", late, lambda sample, name=name: sample.sizes[name]))
        found.append(_growth(f"files in {name}", late, lambda sample, name=name: sample.files[name]))
    found.append(_growth("sockets", late, lambda sample: sample.sockets))
    return [growth for growth in found if growth is not None]


def _of_process(name: str, figure: str) -> Callable[[Sample], float | None]:
    return lambda sample: getattr(sample.processes.get(name), figure, None)


def _growth(what: str, samples: Sequence[Sample], value: Callable[[Sample], float | None]) -> Growth | None:
    """By least squares. None where there is too little to say anything."""
    points = [(sample.seconds, float(found)) for sample in samples if (found := value(sample)) is not None]
    if len(points) < _FEWEST:
        return None
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0
    quarter = max(1, len(points) // 4)
    before, after = (sum(y for _, y in part) / quarter for part in (points[:quarter], points[-quarter:]))
    return Growth(what, slope * _HOUR, before, after)
