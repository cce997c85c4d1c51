"""The files of a heap store: one base image, one log per later epoch, and the name of the current stamp.

Each file gets its name by a rename when it is complete, so a killed process leaves the others readable. Nothing is
synced: a store does not outlive a restart of its host (see ``StoredStamp``). Names carry epoch and nonce: two
executions of one epoch never share a file. Each ends with a digest of its name and content; a damaged one, or one in
the place of another, is as good as none.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import msgspec

from holdfast.errors import StoreDamagedError
from holdfast.state.digested_file import with_digest, without_digest
from holdfast.state.epoch_log import EpochRecord, decode_record, decode_stamp, encode_stamp
from holdfast.state.store import Stamp
from holdfast.storage.private_files import write_private

_log = logging.getLogger(__name__)

_FORMAT = 1
_CURRENT = "CURRENT"
_BASE = "base"
_LOG = "log"
_DIGITS = 20


class _Base(msgspec.Struct, array_like=True, frozen=True):
    version: int
    keys: list[bytes]
    values: list[bytes]


_decoder = msgspec.msgpack.Decoder(_Base)


class HeapFiles:
    """Reads and writes the files of one store."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    def current(self) -> Stamp | None:
        """The stamp of the last commit or load; None when there is none since the host's last start."""
        data = self._read(_CURRENT)
        return None if data is None else decode_stamp(data)

    def set_current(self, stamp: Stamp) -> None:
        self._write(_CURRENT, encode_stamp(stamp))

    def holds(self, stamp: Stamp) -> bool:
        """Whether a base image or a log of this stamp is there."""
        return any((self.directory / _name(kind, stamp)).exists() for kind in (_LOG, _BASE))

    def read_base(self, stamp: Stamp) -> tuple[dict[bytes, bytes], int] | None:
        """The image of ``stamp`` and its size in bytes; None when it is missing or unreadable."""
        data = self._read(_name(_BASE, stamp))
        try:
            base = None if data is None else _decoder.decode(data)
        except msgspec.DecodeError:
            return None
        if data is None or base is None or base.version != _FORMAT:
            return None
        return dict(zip(base.keys, base.values, strict=True)), len(data)

    def write_base(self, stamp: Stamp, data: dict[bytes, bytes]) -> int:
        encoded = msgspec.msgpack.encode(_Base(_FORMAT, list(data), list(data.values())))
        self._write(_name(_BASE, stamp), encoded)
        return len(encoded)

    def read_log(self, stamp: Stamp) -> tuple[EpochRecord, int] | None:
        """The record of ``stamp`` and its size in bytes; None when it is missing or unreadable."""
        data = self._read(_name(_LOG, stamp))
        if data is None:
            return None
        try:
            return decode_record(data), len(data)
        except StoreDamagedError:
            return None

    def write_log(self, stamp: Stamp, record: bytes) -> None:
        self._write(_name(_LOG, stamp), record)

    def remove_logs(self, unwanted: Callable[[int], bool]) -> None:
        """Remove the logs of the epochs for which ``unwanted`` holds."""
        self._remove(_LOG, lambda name: unwanted(int(name.split("-")[1])))

    def remove_bases(self, keep: Stamp) -> None:
        """Remove all base images but one."""
        kept = _name(_BASE, keep)
        self._remove(_BASE, lambda name: name != kept)

    def _remove(self, kind: str, unwanted: Callable[[str], bool]) -> None:
        for path in self.directory.glob(f"{kind}-*"):
            if unwanted(path.name):
                path.unlink(missing_ok=True)

    def _read(self, name: str) -> bytes | None:
        path = self.directory / name
        try:
            return without_digest(path.read_bytes(), path, name)
        except FileNotFoundError:
            return None
        except StoreDamagedError as damaged:
            _log.warning("%s It is not used.", damaged)
            return None

    def _write(self, name: str, data: bytes) -> None:
        temporary = self.directory / f".{name}.{os.getpid()}"
        write_private(temporary, with_digest(data, name))
        temporary.replace(self.directory / name)


def link_files(source: Path, target: Path) -> bool:
    """Give another store the files of this one, none of which is ever changed. False where there are none, or where
    their owner removes some meanwhile; StoreDamagedError where one is not what was written.
    """
    try:
        names = [entry.name for entry in os.scandir(source) if not entry.name.startswith(".")]
        target.mkdir(parents=True)
        for name in names:
            os.link(source / name, target / name)
            without_digest((target / name).read_bytes(), source / name, name)
    except FileNotFoundError:
        return False
    return bool(names)


def _name(kind: str, stamp: Stamp) -> str:
    return f"{kind}-{stamp.epoch:0{_DIGITS}d}-{quote(stamp.nonce, safe='')}"
