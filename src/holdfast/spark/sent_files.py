"""What a program brings with it, sent to the executors through Spark: archives, packages to install, data files."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import xxhash
from pyspark.sql import SparkSession

from holdfast.errors import ProgramError
from holdfast.runtime.requirements import SentRequirements
from holdfast.runtime.task_files import SentFile, TaskFiles
from holdfast.spark.packed_folder import packed_folder, plain_name
from holdfast.spark.python_files import send_python_files
from holdfast.spark.run_folder import run_folder
from holdfast.types.dependencies import Archive, CachedFile, DependencySettings, Requirements, on_driver

#: What Spark unpacks by these names; the others are archives of the same form.
_UNPACKED = (".zip", ".jar", ".tar.gz", ".tgz", ".tar")
_ZIP_BY_ANOTHER_NAME = (".whl", ".egg")
_ARCHIVE = f"an archive with one of {', '.join((*_UNPACKED, *_ZIP_BY_ANOTHER_NAME))}"


def send_files(session: SparkSession, dependencies: DependencySettings) -> TaskFiles:
    """Let tasks of the application find all of it. What was sent before is not sent again."""
    send_python_files(session, dependencies.python_files)
    sender = _Sender(session)
    archives = tuple(sender.archive(each) for each in dependencies.archives)
    cached = tuple(sender.cached(each) for each in dependencies.cached_files)
    requirements = dependencies.requirements
    return TaskFiles(archives, cached, None if requirements is None else sender.requirements(requirements))


class _Named(NamedTuple):
    """Something of an application that Spark does not replace: where it is unpacked, or the name of a file."""

    application: str
    place: str


#: What this process has sent: the digest of its content, or its address.
_sent: dict[_Named, str] = {}


class _Sender:
    """Sends to one application. Copies carry the digest of their content in their names, so that none ever takes the
    place of another; what Spark reads by itself has its own name.
    """

    def __init__(self, session: SparkSession) -> None:
        self._context = session.sparkContext

    def archive(self, archive: Archive) -> str:
        """The folder that it is unpacked into."""
        local = on_driver(archive.path, "add_python_archive() or python.archives", _ARCHIVE)
        if local is None:
            self._unpack(archive.path, archive.target, archive.path, archive.path)
            return archive.target
        suffix = _suffix(local)
        if not local.is_file() or suffix not in (*_UNPACKED, *_ZIP_BY_ANOTHER_NAME):
            raise ProgramError(f"'{archive.path}' of add_python_archive() or python.archives is not {_ARCHIVE}.")
        digest = _digest(local)
        sent_as = ".zip" if suffix in _ZIP_BY_ANOTHER_NAME else suffix
        self._unpack(_copy(local, digest, sent_as), archive.target, digest, archive.path)
        return archive.target

    def cached(self, file: CachedFile) -> SentFile:
        told_by = f"register_cached_file() or pipeline.cached-files, under the name '{file.name}',"
        local = on_driver(file.path, told_by, "a file or a folder")
        if local is None:
            place = file.path.rstrip("/").rpartition("/")[2]
            self._once(place, file.path, file.path, lambda: self._context.addFile(file.path))
        elif local.is_dir():
            place = self._folder(local)
        else:
            place = self._file(local)
        return SentFile(file.name, place, file.executable)

    def requirements(self, requirements: Requirements) -> SentRequirements:
        told_by = "set_python_requirements() or python.requirements"
        file = _local(requirements.path, told_by, "a requirements.txt")
        cache = None
        if requirements.cache is not None:
            folder = _local(requirements.cache, told_by, "a folder of packages")
            if not folder.is_dir():
                raise ProgramError(f"'{requirements.cache}' of {told_by} is no folder; expected one of packages.")
            cache = self._folder(folder)
        digest = xxhash.xxh64_hexdigest(file.read_bytes() + (cache or "").encode())
        return SentRequirements(self._file(file), digest, cache)

    def _file(self, local: Path) -> str:
        copy = _copy(local, digest := _digest(local), local.suffix)
        place = Path(copy).name
        self._once(place, digest, str(local), lambda: self._context.addFile(copy))
        return place

    def _folder(self, local: Path) -> str:
        """A folder is sent as an archive: Spark sends none to the executors of a cluster."""
        archive = packed_folder(local, _directory())
        self._unpack(str(archive), archive.stem, archive.stem, str(local))
        return archive.stem

    def _unpack(self, sent: str, target: str, content: str, told: str) -> None:
        self._once(target, content, told, lambda: self._context.addArchive(f"{sent}#{target}"))

    def _once(self, place: str, content: str, told: str, send: Callable[[], None]) -> None:
        """Send it unless it was sent. ProgramError where something else was sent to its place."""
        name = _Named(self._context.applicationId, place)
        known = _sent.get(name)
        if known is None:
            send()
            _sent[name] = content
        elif known != content:
            raise ProgramError(
                f"'{told}' would be '{place}' on the executors, and this Spark application has sent something else "
                "under that name, which Spark does not replace. Give it another name, or start a new application."
            )


def _local(path: str, told_by: str, expected: str) -> Path:
    local = on_driver(path, told_by, expected)
    if local is None:
        raise ProgramError(f"'{path}' of {told_by} is not on the driver's host; expected {expected} that is.")
    return local


def _suffix(path: Path) -> str:
    return next((one for one in _UNPACKED if path.name.lower().endswith(one)), path.suffix.lower())


def _digest(file: Path) -> str:
    digest = xxhash.xxh64()
    with file.open("rb") as stream:
        while piece := stream.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def _copy(file: Path, digest: str, suffix: str) -> str:
    """A file that Spark can serve for as long as the driver lives, whatever becomes of the user's."""
    copy = _directory() / plain_name(f"{file.name.removesuffix(suffix)}-{digest}{suffix}")
    if not copy.exists():
        shutil.copy(file, copy)
    return str(copy)


def _directory() -> Path:
    directory = run_folder() / "files"
    directory.mkdir(exist_ok=True)
    return directory
