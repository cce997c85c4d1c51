"""What a program brings with it beside its functions, for an engine whose tasks run in this process."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import xxhash

from holdfast.errors import ProgramError
from holdfast.runtime.requirements import SentRequirements
from holdfast.runtime.task_files import SentFile, TaskFiles
from holdfast.types.dependencies import Archive, DependencySettings, Requirements, import_path, on_driver

logger = logging.getLogger(__name__)

_ZIPS = (".whl", ".egg", ".jar")


def local_files(dependencies: DependencySettings, folder: Path) -> TaskFiles:
    """As Spark would have sent them: archives are unpacked in ``folder``; other files are used where they are."""
    for name, told in (("Python", dependencies.executable), ("jars", dependencies.jars)):
        if told:
            logger.info("Tasks run in the process of the test: the program's %s, %s, have no effect.", name, told)
    for archive in dependencies.archives:
        _unpack(archive, folder)
    requirements = dependencies.requirements
    return TaskFiles(
        archives=tuple(archive.target for archive in dependencies.archives),
        cached=tuple(
            SentFile(each.name, str(_here(each.path, "register_cached_file()")), each.executable)
            for each in dependencies.cached_files
        ),
        requirements=None if requirements is None else _requirements(requirements),
        modules=tuple(import_path(_here(path, "add_python_file()")) for path in dependencies.python_files),
    )


def _unpack(archive: Archive, folder: Path) -> None:
    path = _here(archive.path, "add_python_archive()")
    try:
        shutil.unpack_archive(path, folder / archive.target, "zip" if path.suffix.lower() in _ZIPS else None)
    except (shutil.ReadError, ValueError) as error:
        raise ProgramError(
            f"'{archive.path}' of add_python_archive() is no archive that can be unpacked: {error}"
        ) from error


def _requirements(requirements: Requirements) -> SentRequirements:
    told_by = "set_python_requirements()"
    file = _here(requirements.path, told_by)
    cache = None if requirements.cache is None else str(_here(requirements.cache, told_by))
    names = [] if cache is None else sorted(each.name for each in Path(cache).iterdir())
    return SentRequirements(str(file), xxhash.xxh64_hexdigest(file.read_bytes() + repr(names).encode()), cache)


def _here(path: str, told_by: str) -> Path:
    local = on_driver(path, told_by, "what the program brings with it")
    if local is None:
        raise ProgramError(
            f"'{path}' of {told_by} is not on this host, and the engine of this test has no Spark to read it with. "
            "Give the test a local file, or run it with the fixture holdfast_env."
        )
    return local
