"""Modules of the program that Spark sends to the executors: ``python.files`` and ``env.add_python_file``."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import xxhash
from pyspark.sql import SparkSession

from holdfast.errors import ProgramError
from holdfast.spark.run_folder import run_folder

#: What Spark takes as it is.
_SENT_AS_THEY_ARE = (".py", ".zip", ".egg", ".jar")
_WHEEL = ".whl"
#: A folder of the same content makes the same archive.
_NO_DATE = (1980, 1, 1, 0, 0, 0)


def send_python_files(session: SparkSession, paths: Sequence[str]) -> None:
    """Let tasks of the application import them. What was sent before is not sent again."""
    context = session.sparkContext
    for path in paths:
        file = _as_spark_takes_it(path)
        name = file.rpartition("/")[2]
        if name not in {each.rpartition("/")[2] for each in context.listFiles}:
            context.addPyFile(file)
            _sent[context.applicationId, name] = _content_of(file)
        elif _sent.get((context.applicationId, name), _content_of(file)) != _content_of(file):
            raise ProgramError(
                f"The module '{path}' has another content than the one of its name that this Spark application has "
                "sent to its executors, and Spark does not replace what it has sent. Give it another name, or start "
                "a new application."
            )


#: What this process has sent, by application and name.
_sent: dict[tuple[str, str], str] = {}


def _content_of(file: str) -> str:
    """What tells one content from another; of a file that Spark itself reads, its address."""
    return file if "://" in file else xxhash.xxh64_hexdigest(Path(file).read_bytes())


def _as_spark_takes_it(path: str) -> str:
    here = path.removeprefix("file://")
    if "://" in here:
        return path  # Spark reads it from there
    local = Path(here)
    if local.is_dir():
        return _kept(f"{local.resolve().name}-{{}}.zip", _archive(local.resolve()))
    if not local.is_file():
        raise ProgramError(
            f"The module '{path}' of add_python_file() or python.files does not exist on the driver (looked for "
            f"{local.absolute()}); expected a Python file, a folder or an archive."
        )
    if local.suffix.lower() == _WHEEL:
        # An archive of modules under a name that Spark does not know for one.
        return _kept(f"{local.stem}-{{}}.zip", local.read_bytes())
    if local.suffix.lower() not in _SENT_AS_THEY_ARE:
        raise ProgramError(
            f"'{path}' of add_python_file() or python.files is no module; expected a folder or a file with one of "
            f"{', '.join((*_SENT_AS_THEY_ARE, _WHEEL))}. Other files are sent by spark.sparkContext.addFile(path)."
        )
    return str(local.absolute())


def _archive(folder: Path) -> bytes:
    """A package is imported by its name; of any other folder what is in it."""
    root = folder.parent if (folder / "__init__.py").is_file() else folder
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in _files_below(folder):
            archive.writestr(zipfile.ZipInfo(file.relative_to(root).as_posix(), _NO_DATE), file.read_bytes())
    return content.getvalue()


def _files_below(folder: Path) -> Iterator[Path]:
    """In one order, without what Python and tools leave there, and without virtual environments."""
    for directory, folders, files in os.walk(folder):
        here = Path(directory)
        folders[:] = sorted(
            each
            for each in folders
            if not each.startswith(".") and each != "__pycache__" and not (here / each / "pyvenv.cfg").exists()
        )
        yield from (here / file for file in sorted(files) if not file.startswith("."))


def _kept(name: str, content: bytes) -> str:
    """A file that Spark can serve for as long as the driver lives. Its name tells its content: Spark does not replace
    what it has sent under a name.
    """
    file = _directory() / name.format(xxhash.xxh64_hexdigest(content))
    file.write_bytes(content)
    return str(file)


def _directory() -> Path:
    directory = run_folder() / "python-files"
    directory.mkdir(exist_ok=True)
    return directory
