"""What a program brings with it beside its functions: modules, archives, packages, data files and jars."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from holdfast.errors import ProgramError


@dataclass(frozen=True)
class Archive:
    """An archive that is unpacked where tasks run, into a folder of the name ``target``."""

    path: str
    target: str


@dataclass(frozen=True)
class Requirements:
    """Packages as pip's files list them. With ``cache``, a folder of packages, pip needs no network."""

    path: str
    cache: str | None = None


@dataclass(frozen=True)
class CachedFile:
    """A file, or a folder, that functions find by its name."""

    path: str
    name: str
    executable: bool = False


@dataclass(frozen=True)
class DependencySettings:
    """All that a program brings. Paths are those of the driver's host, or addresses that hosts of the cluster read."""

    python_files: tuple[str, ...] = ()
    archives: tuple[Archive, ...] = ()
    requirements: Requirements | None = None
    cached_files: tuple[CachedFile, ...] = ()
    #: The Python of the workers; below an archive's target where it came with one.
    executable: str | None = None
    jars: tuple[str, ...] = ()
    classpaths: tuple[str, ...] = ()


def without_scheme(path: str) -> str:
    """The path of a ``file:`` address; what is no such address as it is."""
    if path.startswith("file://"):
        return path.removeprefix("file://")
    return path.removeprefix("file:")


def on_driver(path: str, told_by: str, expected: str) -> Path | None:
    """The file or folder that a dependency is on the driver's host; None for one that others read by its address.
    ``told_by`` is how the program gave it.
    """
    here = without_scheme(path)
    if "://" in here:
        return None
    local = Path(here).absolute()
    if not local.exists():
        raise ProgramError(
            f"'{path}' of {told_by} does not exist on the driver (looked for {local}); expected {expected}."
        )
    return local


def import_path(module: Path) -> str:
    """Where the driver looks to import a module that executors are sent: the place of a file or of a package, else the
    folder or the archive itself.
    """
    return str(module.parent if module.suffix == ".py" or (module / "__init__.py").is_file() else module)
