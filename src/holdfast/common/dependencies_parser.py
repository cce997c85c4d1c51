"""From a configuration to what the program brings with it."""

from __future__ import annotations

import re

from holdfast.common import dependency_options as keys
from holdfast.common.configuration import Configuration
from holdfast.common.option_types import BOOLEAN
from holdfast.errors import ConfigurationError
from holdfast.types.dependencies import Archive, CachedFile, DependencySettings, Requirements

#: What can stand in an address as it is.
_FOLDER = re.compile(r"[\w.-]+", re.ASCII)
_OF_LETTERS = "where the folder, else the archive's name, has letters, digits and '_', '-', '.' only"
_OF_A_FILE = {"name", "path", "executable"}


def dependency_settings(configuration: Configuration) -> DependencySettings:
    get = configuration.get
    return DependencySettings(
        python_files=get(keys.PYTHON_FILES),
        archives=_archives(get(keys.PYTHON_ARCHIVES)),
        requirements=_requirements(get(keys.PYTHON_REQUIREMENTS)),
        cached_files=_cached_files(get(keys.CACHED_FILES)),
        executable=get(keys.PYTHON_EXECUTABLE),
        jars=get(keys.JARS),
        classpaths=get(keys.CLASSPATHS),
    )


def _archives(told: tuple[str, ...]) -> tuple[Archive, ...]:
    by_target: dict[str, Archive] = {}
    for text in told:
        path, _, target = text.partition(keys.PARAMETER)
        archive = Archive(path, target or path.rstrip("/").rpartition("/")[2])
        if not path or not _FOLDER.fullmatch(archive.target) or archive.target in (".", ".."):
            raise _wrong(keys.PYTHON_ARCHIVES.key, text, f"'archive' or 'archive#folder', {_OF_LETTERS}")
        known = by_target.setdefault(archive.target, archive)
        if known != archive:
            raise _wrong(keys.PYTHON_ARCHIVES.key, text, f"another folder than that of '{known.path}'")
    return tuple(by_target.values())


def _requirements(told: str | None) -> Requirements | None:
    if not told:
        return None
    path, _, cache = told.partition(keys.PARAMETER)
    return Requirements(path, cache or None)


def _cached_files(told: tuple[dict[str, str], ...]) -> tuple[CachedFile, ...]:
    found: dict[str, CachedFile] = {}
    for entry in told:
        if not {"name", "path"} <= entry.keys() <= _OF_A_FILE:
            raise _wrong(keys.CACHED_FILES.key, str(dict(entry)), "'name' and 'path', and 'executable' where it is one")
        file = CachedFile(entry["path"], entry["name"], BOOLEAN.read(entry.get("executable", "false")))
        if found.setdefault(file.name, file) != file:
            raise _wrong(keys.CACHED_FILES.key, file.name, "one file for each name")
    return tuple(found.values())


def _wrong(key: str, seen: str, expected: str) -> ConfigurationError:
    return ConfigurationError(f"The option '{key}' has '{seen}'; expected {expected}")
