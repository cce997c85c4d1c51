"""What is run on which line of Spark."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

#: Values of ``HOLDFAST_SPARK_INTERNALS``, by what they do to the accelerations that reach behind Spark's public API.
ACCELERATIONS = {"on": "auto", "off": "off"}


@dataclass(frozen=True)
class Part:
    """Some tests, run by one pytest."""

    name: str
    #: What of Holdfast they prove, for the page.
    feature: str
    #: Of pytest: files, and which of their tests.
    arguments: tuple[str, ...]
    #: Starts clusters, or times things: nothing else runs beside it.
    alone: bool = False


@dataclass(frozen=True)
class Run:
    """A part on a line of Spark, with accelerations ``on`` or ``off``."""

    version: str
    accelerations: str
    part: Part

    @property
    def name(self) -> str:
        return f"{self.version}-{self.accelerations}-{self.part.name}"


def _integration(name: str, feature: str, alone: bool = False) -> Part:
    return Part(name, feature, (f"tests/integration/test_{name.replace('-', '_')}.py",), alone)


#: Short enough to be run on every line.
SMOKE = Part("smoke", "a program, a kill, a stream and its fork, a DataFrame", ("tests/smoke",))

_FIRST_PROGRAM = "test_programs_run and first-program"

PARTS = (
    SMOKE,
    Part("first-program", "the first program", ("tests/docs/test_readme.py", "-k", _FIRST_PROGRAM)),
    Part("demo", "the demo", ("tests/demo/test_demo.py",)),
    Part("spark", "sessions, logs of streams, Python workers", ("tests/spark", "-n", "2", "--dist", "loadfile")),
    _integration("local", "programs on local Spark"),
    _integration("kills", "kills of workers and drivers"),
    _integration("rescale", "another parallelism"),
    _integration("data-frames", "bounded DataFrames"),
    _integration("streams", "Spark's streams, forked from checkpoints"),
    _integration("stream-kills", "kills of jobs over streams"),
    _integration("event-time-streams", "event time of streams"),
    _integration("combining", "combining before the exchange"),
    _integration("windows", "windows"),
    _integration("queries", "SQL in the middle of a program"),
    _integration("cluster", "a standalone cluster", alone=True),
    _integration("worker-daemon", "the daemon of Python workers", alone=True),
)

#: Parts of each line, the oldest first: the oldest, the first of a major version and the default one have all of them.
VERSIONS: dict[str, tuple[Part, ...]] = {
    "3.5": PARTS,
    "4.0": PARTS,
    "4.1": (SMOKE,),
    "4.2": (SMOKE,),
    "4.3": PARTS,
}

OLDEST = next(iter(VERSIONS))


def runs() -> Iterator[Run]:
    """All that there are. Every line begins with its smoke, and what breaks there need not be waited for."""
    for version, parts in VERSIONS.items():
        for accelerations in ACCELERATIONS:
            for part in parts:
                yield Run(version, accelerations, part)


def select(versions: list[str] | None, parts: list[str] | None, accelerations: str | None) -> list[Run]:
    """The parts that were asked for; what was not given is not chosen by. The line ``oldest`` is the first one."""
    versions = versions and [OLDEST if version == "oldest" else version for version in versions]
    _known(versions, VERSIONS, "line of Spark")
    _known(parts, [part.name for part in PARTS], "part")
    return [
        run
        for run in runs()
        if (versions is None or run.version in versions)
        and (parts is None or run.part.name in parts)
        and (accelerations is None or run.accelerations == accelerations)
    ]


class Unknown(Exception):
    """A name that the catalogue does not have. The text lists those that it has."""


def _known(names: list[str] | None, known: Collection[str], kind: str) -> None:
    for name in names or ():
        if name not in known:
            raise Unknown(f"{name!r} is no {kind} of the matrix; it has {', '.join(known)}")
