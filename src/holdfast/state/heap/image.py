"""The content of a heap store in memory, and the cache of such images that a process keeps between its tasks."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from holdfast.state.epoch_log import EpochRecord, wrong_version
from holdfast.state.heap.files import HeapFiles
from holdfast.state.heap.sorted_keys import SortedKeys
from holdfast.state.store import Stamp


class Marks(NamedTuple):
    """What an epoch changed, and the size of its log."""

    stamp: Stamp
    keys: list[bytes]
    ranges: list[tuple[bytes, bytes]]
    log_bytes: int


class HeapImage:
    """Entries at one stamp, with the marks of the epochs since the base image on disk."""

    def __init__(self, data: dict[bytes, bytes], base: Stamp, base_bytes: int) -> None:
        self.data = data
        self.stamp = base
        self.base = base
        self.base_bytes = base_bytes
        self.marks: list[Marks] = []
        self.order = SortedKeys(data)

    def put(self, key: bytes, value: bytes | None) -> None:
        if value is None:
            if self.data.pop(key, None) is not None:
                self.order.remove(key)
            return
        if key not in self.data:
            self.order.add(key)
        self.data[key] = value

    def apply(self, entries: Iterable[tuple[bytes, bytes | None]]) -> None:
        for key, value in entries:
            self.put(key, value)

    def replay(self, record: EpochRecord, size: int) -> None:
        """Go on to the epoch of ``record``."""
        self.apply(zip(record.keys, record.values, strict=True))
        self.marks.append(Marks(record.stamp, record.keys, record.ranges, size))
        self.stamp = record.stamp


#: By directory. An image is taken out while a transaction changes it, and comes back at its end.
_images: dict[Path, HeapImage] = {}


def take(files: HeapFiles, stamp: Stamp) -> HeapImage:
    """The image at exactly ``stamp``: the cached one, brought forward if needed, else read from the files.

    Raises StoreVersionError where the files do not lead to the stamp.
    """
    for directory in [one for one in _images if not one.exists()]:
        del _images[directory]
    found = files.current()
    image = _images.pop(files.directory, None)
    if found is None or not files.holds(stamp):
        raise wrong_version(files.directory, found, stamp)
    later: list[tuple[EpochRecord, int]] = []
    at = stamp
    while image is None or image.stamp != at:
        base = files.read_base(at)
        if base is not None:
            image = HeapImage(base[0], at, base[1])
            break
        log = files.read_log(at)
        if log is None:
            reason = f"epoch {at.epoch} (execution {at.nonce}) has no log that is whole"
            raise wrong_version(files.directory, found, stamp, reason)
        later.append(log)
        at = log[0].base
    for record, size in reversed(later):
        image.replay(record, size)
    return image


def give_back(directory: Path, image: HeapImage) -> None:
    """Keep an image for the next task of this process."""
    _images[directory] = image


def drop(directory: Path) -> None:
    """Forget the image of a directory."""
    _images.pop(directory, None)
