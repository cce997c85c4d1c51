"""A local store in the worker's memory, with a log per epoch on the host's disk; state/store.py is the contract."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from holdfast.errors import StateError
from holdfast.state.epoch_log import (
    RANGE_THRESHOLD,
    RECORDS_FLOOR_BYTES,
    changed_keys,
    check_next,
    encode_record,
)
from holdfast.state.heap import image as images
from holdfast.state.heap.files import HeapFiles
from holdfast.state.heap.image import HeapImage, Marks
from holdfast.state.store import ChangedKeys, LocalStore, Stamp


class HeapStore(LocalStore):
    """A dict that outlives its process by a base image and logs.

    The image of the last stamp stays in the process when the store is closed. Another process finds the same
    content by replaying the logs up to the stamp it is asked for. Logs are folded into a new base image when they
    take more bytes than it and nobody needs their change marks; the newest log stays, as the way back to its base.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._files = HeapFiles(directory.resolve())
        self._image: HeapImage | None = None
        self._before: dict[bytes, bytes | None] = {}
        self._ranges: list[tuple[bytes, bytes]] = []

    # Versions

    def stamp(self) -> Stamp | None:
        return self._files.current() if self._image is None else self._image.stamp

    def load(self, entries: Iterable[Sequence[tuple[bytes, bytes | None]]], stamp: Stamp) -> None:
        self.rollback()
        data: dict[bytes, bytes] = {}
        for batch in entries:
            for key, value in batch:
                if value is None:
                    data.pop(key, None)
                else:
                    data[key] = value
        size = self._files.write_base(stamp, data)
        self._files.set_current(stamp)
        self._files.remove_bases(keep=stamp)
        self._files.remove_logs(lambda epoch: True)
        images.give_back(self._files.directory, HeapImage(data, stamp, size))

    def begin(self, base: Stamp) -> None:
        self.rollback()
        self._image = images.take(self._files, base)
        if self._files.current() != base:
            self._files.remove_logs(lambda epoch: epoch > base.epoch)
            self._files.set_current(base)

    def commit(self, stamp: Stamp) -> None:
        image = self._running
        check_next(image.stamp, stamp, self._files.directory)
        after = {key: image.data.get(key) for key in self._before}
        record = encode_record(image.stamp, stamp, self._ranges, after, after.values())
        self._files.write_log(stamp, record)
        self._files.set_current(stamp)
        image.marks.append(Marks(stamp, list(after), self._ranges, len(record)))
        image.stamp = stamp
        if sum(one.log_bytes for one in image.marks) > max(RECORDS_FLOOR_BYTES, image.base_bytes):
            self._fold(image, stamp.epoch)
        self._end(image)

    def rollback(self) -> None:
        if self._image is not None:
            self._image.apply(self._before.items())
            self._end(self._image)

    def changes_since(self, epoch: int) -> ChangedKeys | None:
        image = self._image or self._at_rest()
        if image is None or not image.base.epoch <= epoch <= image.stamp.epoch:
            return None
        marks = [one for one in image.marks if one.stamp.epoch > epoch]
        ranges = [one for mark in marks for one in mark.ranges] + self._ranges
        return changed_keys(ranges, [*(mark.keys for mark in marks), self._before])

    def forget_changes(self, epoch: int) -> None:
        image = self._image or self._at_rest()
        if image is None:
            return
        foldable = sum(one.log_bytes for one in image.marks[:-1] if one.stamp.epoch <= epoch)
        if foldable > image.base_bytes:
            self._fold(image, epoch)

    def close(self) -> None:
        self.rollback()

    # Entries

    def get(self, key: bytes) -> bytes | None:
        return self._running.data.get(key)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return list(map(self._running.data.get, keys))

    def write(self, entries: Sequence[tuple[bytes, bytes | None]]) -> None:
        image, before = self._running, self._before
        present = image.data
        for key, value in entries:
            previous = present.get(key)
            if previous != value:
                before.setdefault(key, previous)
                image.put(key, value)

    def delete_range(self, start: bytes, end: bytes) -> None:
        image = self._running
        doomed = [key for key in image.order.between(start, end) if key in image.data]
        self.write([(key, None) for key in doomed])
        if len(doomed) >= RANGE_THRESHOLD:
            self._ranges.append((start, end))

    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        image = self._running
        for key in image.order.between(start, end):
            value = image.data.get(key)
            if value is not None:
                yield key, value

    def last_key(self, start: bytes, end: bytes) -> bytes | None:
        return self._running.order.last_between(start, end)

    # Inside

    @property
    def _running(self) -> HeapImage:
        if self._image is None:
            raise StateError(f"The store {self._files.directory} has no transaction; call begin first.")
        return self._image

    def _end(self, image: HeapImage) -> None:
        images.give_back(self._files.directory, image)
        self._image = None
        self._before = {}
        self._ranges = []

    def _at_rest(self) -> HeapImage | None:
        """The image of the last commit, outside of a transaction."""
        stamp = self._files.current()
        if stamp is None:
            return None
        image = images.take(self._files, stamp)
        images.give_back(self._files.directory, image)
        return image

    def _fold(self, image: HeapImage, epoch: int) -> None:
        """Put the logs up to ``epoch``, but the newest one, into a new base image."""
        folded = [one for one in image.marks[:-1] if one.stamp.epoch <= epoch]
        stored = self._files.read_base(image.base)
        if not folded or stored is None:
            return
        target = HeapImage(stored[0], image.base, stored[1])
        for mark in folded:
            log = self._files.read_log(mark.stamp)
            if log is None:
                return
            target.replay(*log)
        image.base, image.marks = target.stamp, image.marks[len(folded) :]
        image.base_bytes = self._files.write_base(target.stamp, target.data)
        self._files.remove_bases(keep=target.stamp)
        self._files.remove_logs(lambda one: one <= target.stamp.epoch)
