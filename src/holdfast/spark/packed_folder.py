"""A folder as an archive."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import xxhash

#: A folder of the same content makes the same archive.
_NO_DATE = (1980, 1, 1, 0, 0, 0)
_MODE_BITS = 16


def plain_name(name: str) -> str:
    """A name that can stand in an address as it is."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name)


def packed_folder(folder: Path, directory: Path) -> Path:
    """An archive of all files of a folder, in ``directory``. Its name tells its content."""
    name = plain_name(folder.resolve().name)
    unnamed = directory / f"{name}.part"
    with zipfile.ZipFile(unnamed, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(each for each in folder.rglob("*") if each.is_file()):
            entry = zipfile.ZipInfo(file.relative_to(folder).as_posix(), _NO_DATE)
            entry.external_attr = file.stat().st_mode << _MODE_BITS
            entry.compress_type = zipfile.ZIP_DEFLATED
            with file.open("rb") as source, archive.open(entry, "w", force_zip64=True) as target:
                while piece := source.read(1 << 20):
                    target.write(piece)
    with unnamed.open("rb") as stream:
        digest = xxhash.xxh64()
        while piece := stream.read(1 << 20):
            digest.update(piece)
    return unnamed.rename(directory / f"{name}-{digest.hexdigest()}.zip")
