"""The epoch records of a RocksDB store: one file per epoch, beside the database.

They are written once, read seldom and dropped soon. Inside the database they would pass through its log, its write
buffers and its compactions, and be in every incremental snapshot of its files.

A file holds one or more records (pieces) of one epoch. An epoch that changes more than is kept in memory writes a piece
before it applies what the piece can undo; the file is then called ``running``. It gets the name of its epoch and
execution right before the commit. So a file that is newer than the store's stamp is of an execution that did not
commit: whoever finds it undoes it, newest piece first, which may be done any number of times.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, unquote

from holdfast.state.epoch_log import EpochRecord, decode_record, wrong_version
from holdfast.state.store import Stamp
from holdfast.storage.private_files import private_opener

_RUNNING = "running"
_LENGTH = 4
_DIGITS = 20
#: More records than this are not kept, however small.
_MOST = 4096


class EpochFiles:
    """The records of one store. Used by who holds the store's lock; ``refresh`` after it was taken."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._sizes: dict[Stamp, int] = {}

    def refresh(self) -> None:
        """Look at the directory anew."""
        self._directory.mkdir(parents=True, exist_ok=True)
        found = [entry for entry in os.scandir(self._directory) if entry.name != _RUNNING]
        self._sizes = {stamp_of(entry.name): entry.stat().st_size for entry in sorted(found, key=lambda e: e.name)}

    # Writing

    def add_piece(self, record: bytes) -> None:
        """Add to the record of the running epoch: all of it, or an error and nothing."""
        rest = memoryview(len(record).to_bytes(_LENGTH, "big") + record)
        with open(self._directory / _RUNNING, "ab", buffering=0, opener=private_opener) as file:
            before = file.tell()
            try:
                # A disk that gets full takes a part, and says so only when it is given the rest.
                while rest:
                    rest = rest[file.write(rest) :]
            except BaseException:
                file.truncate(before)
                raise

    def finish(self, stamp: Stamp) -> None:
        """What was added is the record of ``stamp``."""
        path = self._directory / _name(stamp)
        os.replace(self._directory / _RUNNING, path)
        self._sizes[stamp] = path.stat().st_size

    def drop_running(self) -> None:
        (self._directory / _RUNNING).unlink(missing_ok=True)

    def drop(self, stamp: Stamp) -> None:
        (self._directory / _name(stamp)).unlink(missing_ok=True)
        self._sizes.pop(stamp, None)

    def drop_until(self, epoch: int) -> None:
        """Delete the records of epochs up to ``epoch``; the newest one stays, it is the undo of the last commit."""
        for stamp in list(self._sizes)[:-1]:
            if stamp.epoch <= epoch:
                self.drop(stamp)

    def trim(self, limit: int) -> None:
        """Delete the oldest records while all of them take more than ``limit`` bytes; the newest one stays."""
        total = self.size
        for stamp in list(self._sizes)[:-1]:
            if total <= limit and len(self._sizes) <= _MOST:
                return
            total -= self._sizes[stamp]
            self.drop(stamp)

    # Reading

    @property
    def size(self) -> int:
        return sum(self._sizes.values())

    def oldest(self) -> int | None:
        return next((stamp.epoch for stamp in self._sizes), None)

    def newer_than(self, epoch: int) -> list[Stamp]:
        """Stamps of later epochs that have a record, oldest first."""
        return [stamp for stamp in self._sizes if stamp.epoch > epoch]

    def base_of(self, stamp: Stamp) -> Stamp | None:
        """The stamp before; None when there is no record."""
        if stamp not in self._sizes:
            return None
        return next(self.pieces(stamp)).base

    def check_way_back(self, found: Stamp, base: Stamp) -> None:
        """Raise unless the records lead from ``found`` to ``base``."""
        store, current = self._directory.parent, found
        while current.epoch > base.epoch:
            before = self.base_of(current)
            if before is None:
                raise wrong_version(store, found, base, f"no undo of epoch {current.epoch} is left")
            current = before
        if current != base:
            reason = f"its epoch {current.epoch} is of execution {current.nonce}" if current != found else ""
            raise wrong_version(store, found, base, reason)

    def pieces(self, stamp: Stamp | None, newest_first: bool = False) -> Iterator[EpochRecord]:
        """The pieces of a record, one at a time; of the running epoch where ``stamp`` is None."""
        try:
            file = open(self._directory / (_RUNNING if stamp is None else _name(stamp)), "rb")  # noqa: SIM115 - closed below
        except FileNotFoundError:
            return
        with file:
            places: list[tuple[int, int]] = []
            end = os.fstat(file.fileno()).st_size
            while len(head := file.read(_LENGTH)) == _LENGTH:
                places.append((file.tell(), int.from_bytes(head, "big")))
                file.seek(places[-1][1], os.SEEK_CUR)
            for start, length in reversed(places) if newest_first else places:
                if start + length <= end:  # else its writer died, and nothing of it was applied
                    file.seek(start)
                    yield decode_record(file.read(length))


def stamp_of(name: str) -> Stamp:
    epoch, _, nonce = name.partition("-")
    return Stamp(int(epoch), unquote(nonce))


def _name(stamp: Stamp) -> str:
    return f"{stamp.epoch:0{_DIGITS}d}-{quote(stamp.nonce, safe='')}"
