"""What a program brings with it beside its functions, as the methods of its environment."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import TypeVar

from holdfast.common import dependency_options as options
from holdfast.common.configuration import Configuration
from holdfast.common.option_types import Option

T = TypeVar("T")


class ProgramFiles(ABC):
    """Everything is sent when a job starts. Paths are those of the driver's host, or addresses such as ``hdfs://``."""

    @abstractmethod
    def get_configuration(self) -> Configuration: ...

    def add_python_file(self, file_path: str) -> None:
        """Modules that the program's functions are in, for executors that do not have them: a Python file, a folder or
        an archive (``.zip``, ``.egg``, ``.whl``).
        """
        self._add(options.PYTHON_FILES, os.fspath(file_path))

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> None:
        """An archive that is unpacked in the working directory of tasks, into the folder ``target_dir``, else into one
        of its name. Functions open its files by relative paths and import its modules; it may bring the Python of
        ``set_python_executable``.
        """
        self._add(options.PYTHON_ARCHIVES, _with_parameter(archive_path, target_dir))

    def set_python_requirements(self, requirements_file_path: str, requirements_cache_dir: str | None = None) -> None:
        """Packages that pip installs once on every host that runs tasks: from ``requirements_cache_dir``, a folder on
        the driver, where one is given, and without network then.
        """
        told = _with_parameter(requirements_file_path, requirements_cache_dir)
        self.get_configuration().set_option(options.PYTHON_REQUIREMENTS, told)

    def set_python_executable(self, python_exec: str) -> None:
        """The Python that tasks run in: a path on the executors' hosts, or one below the folder of an archive."""
        self.get_configuration().set_option(options.PYTHON_EXECUTABLE, os.fspath(python_exec))

    def register_cached_file(self, file_path: str, name: str, executable: bool = False) -> None:
        """A file or folder that functions find with ``runtime_context.get_distributed_cache().get_file(name)``."""
        entry = {"name": name, "path": os.fspath(file_path), "executable": str(bool(executable)).lower()}
        self._add(options.CACHED_FILES, entry)

    def add_jars(self, *jars_path: str) -> None:
        """Jars that the Spark application is started with. An application that runs already must have them."""
        self._add(options.JARS, *map(os.fspath, jars_path))

    def add_classpaths(self, *classpaths: str) -> None:
        """Jars and folders that are on every host, for the class path of the Spark application that is started."""
        self._add(options.CLASSPATHS, *map(os.fspath, classpaths))

    def _add(self, option: Option[tuple[T, ...]], *more: T) -> None:
        known = self.get_configuration().get(option)
        self.get_configuration().set_option(option, option.kind.show((*known, *more)))


def _with_parameter(path: str, parameter: str | None) -> str:
    told = os.fspath(path)
    return told if parameter is None else f"{told}{options.PARAMETER}{os.fspath(parameter)}"
