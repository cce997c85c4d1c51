"""An archive that carries Python and Holdfast to hosts that have neither, made of the Python that runs the tests.

Users make theirs with conda-pack, or from a Python that was built to be moved. This one is made in seconds: only what
executors need, and without compression.
"""

from __future__ import annotations

import io
import re
import sys
import sysconfig
import tarfile
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

from tests.kit.driver import PROJECT

#: Spark brings its own, and pandas is for the driver.
_NOT_ON_EXECUTORS = frozenset({"pyspark", "pandas"})
_LEFT_OUT = frozenset(
    {"__pycache__", "site-packages", "test", "tests", "idlelib", "tkinter", "ensurepip", "lib2to3", "include"}
)
#: A Python with a shared library looks for it where it was built.
_START = """#!/bin/sh
here=$(dirname "$0")
LD_LIBRARY_PATH="$here/../lib" exec "$here/{name}" "$@"
"""


def pack_environment(archive: Path) -> Path:
    """Write ``archive``, a .tar.gz, whose ``bin/python`` imports Holdfast."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    library = f"lib/{version}"
    # Spark sets the rights of what it unpacks as it goes, and stumbles over links whose file comes later. It forgets
    # rights where the archive is not a .tar.gz.
    with tarfile.open(archive, "w:gz", compresslevel=0, dereference=True) as tar:
        tar.add(Path(sys.executable).resolve(), f"bin/{version}")
        _add_text(tar, "bin/python", _START.format(name=version))
        for shared in Path(sysconfig.get_config_var("LIBDIR")).glob(f"lib{version}*.so.*"):
            tar.add(shared, f"lib/{shared.name}")
        _add_folder(tar, Path(sysconfig.get_path("stdlib")), library)
        for package in _distributions("holdfast"):
            for file in package.files or ():
                if not _LEFT_OUT & set(file.parts) and ".." not in file.parts:
                    tar.add(str(file.locate()), f"{library}/site-packages/{file}")
        _add_folder(tar, PROJECT / "src", f"{library}/site-packages")
    return archive


def _distributions(name: str) -> Iterator[Distribution]:
    """All that a package needs, without itself."""
    found: dict[str, Distribution] = {}
    waiting = [name]
    while waiting:
        for text in distribution(waiting.pop()).requires or ():
            needed = Requirement(text)
            plain = re.sub(r"[-_.]+", "-", needed.name).lower()
            wanted = needed.marker is None or needed.marker.evaluate({"extra": ""})
            if wanted and plain not in found and plain not in _NOT_ON_EXECUTORS:
                found[plain] = distribution(plain)
                waiting.append(plain)
    yield from found.values()


def _add_folder(tar: tarfile.TarFile, folder: Path, name: str) -> None:
    def chosen(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        below = Path(entry.name).relative_to(name)
        return None if _LEFT_OUT & set(below.parts) or entry.name.endswith(".a") else entry

    tar.add(folder, name, filter=chosen)


def _add_text(tar: tarfile.TarFile, name: str, text: str) -> None:
    entry = tarfile.TarInfo(name)
    entry.mode, entry.size = 0o755, len(text.encode())
    tar.addfile(entry, io.BytesIO(text.encode()))
