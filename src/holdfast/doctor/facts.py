"""What is known about an application before anybody judges it: plain values, gathered elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Request:
    """What to look at on every host. ``state_directory`` None is Holdfast's own choice."""

    storages: tuple[str, ...] = ()
    #: By storage: the file that the driver left there. Whoever has the same storage sees it.
    markers: Mapping[str, str] | None = None
    state_directory: str | None = None
    #: The setting ``spark.local.dir``.
    spark_directories: str | None = None
    #: What the settings need beside what every application needs.
    packages: tuple[str, ...] = ()


@dataclass(frozen=True)
class DirectoryFacts:
    """A directory of a host's own. ``failure`` is why no file can be made in it; sizes are bytes."""

    path: str
    purpose: str
    free: int
    total: int
    owner: str
    failure: str | None = None


@dataclass(frozen=True)
class StorageFacts:
    """A checkpoint or savepoint directory, tried from one host."""

    uri: str
    seconds: float
    exclusive_create: bool
    #: How its file system is reached, where there are several ways.
    access: str | None = None
    failure: str | None = None


@dataclass(frozen=True)
class Clock:
    """How far the clock of a host is ahead of the driver's, in seconds, and how far that may be wrong."""

    ahead: float
    error: float


@dataclass(frozen=True)
class HostFacts:
    """The Python of the driver, or of one executor. ``process`` tells executors of a host apart."""

    host: str
    process: int
    python: str
    executable: str
    user: str
    #: Versions; None for what is not installed.
    packages: Mapping[str, str | None]
    #: Why what runs in tasks cannot be imported.
    import_failure: str | None
    directories: tuple[DirectoryFacts, ...]
    storages: tuple[StorageFacts, ...]
    clock: Clock | None = None


@dataclass(frozen=True)
class ApplicationFacts:
    """A Spark application and its executors."""

    spark_version: str
    java_version: str
    master: str
    is_local: bool
    #: What the application was told, ``spark.*``.
    settings: Mapping[str, str]
    #: By title: the reason why an acceleration is off, and what happens instead.
    accelerations_off: Mapping[str, tuple[str, str]]
    executors: tuple[HostFacts, ...]
    #: How many executors the scheduler knows; None where it does not tell.
    executors_known: int | None
    #: Why no Python task gave an answer.
    task_failure: str | None = None
