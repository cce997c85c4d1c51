"""One record per committed epoch: what it changed. Change marks, and the way between epochs, in both stores.

A record lists the changed keys once, each with one value: the value *before* the epoch where the store itself is up
to date and a record serves to step back (LMDB), the value *after* it where records are replayed on a base image
(heap). It ends with a digest of itself.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from pathlib import Path

import msgspec

from holdfast.errors import StoreDamagedError, StoreVersionError
from holdfast.state.digested_file import with_digest, without_digest
from holdfast.state.store import ChangedKeys, Stamp

_FORMAT = 1
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

#: A range deletion that hits fewer keys than this is recorded as single keys only.
RANGE_THRESHOLD = 64
#: Records beyond this size and beyond the size of the state itself cost more than a full snapshot and are dropped.
RECORDS_FLOOR_BYTES = 64 << 20


class EpochRecord(msgspec.Struct, array_like=True, frozen=True):
    """What one epoch changed, and the stamps around it."""

    version: int
    epoch: int
    nonce: str
    base_epoch: int
    base_nonce: str
    ranges: list[tuple[bytes, bytes]]
    keys: list[bytes]
    values: list[bytes | None]
    #: Of all entries before the epoch, in a store that keeps one.
    base_digest: int = 0

    @property
    def stamp(self) -> Stamp:
        return Stamp(self.epoch, self.nonce)

    @property
    def base(self) -> Stamp:
        return Stamp(self.base_epoch, self.base_nonce)


class StoredStamp(msgspec.Struct, array_like=True, frozen=True):
    """The stamp as a store keeps it. Stores are not synced to disk, so one from before a reboot does not count."""

    version: int
    epoch: int
    nonce: str
    boot_id: str

    @classmethod
    def of(cls, stamp: Stamp) -> StoredStamp:
        return cls(_FORMAT, stamp.epoch, stamp.nonce, boot_id())

    def current(self) -> Stamp | None:
        """The stamp, or None when the host was started anew since."""
        return Stamp(self.epoch, self.nonce) if self.boot_id == boot_id() else None


_encoder = msgspec.msgpack.Encoder()
_record_decoder = msgspec.msgpack.Decoder(EpochRecord)
_stamp_decoder = msgspec.msgpack.Decoder(StoredStamp)


def encode_record(
    base: Stamp,
    stamp: Stamp,
    ranges: list[tuple[bytes, bytes]],
    keys: Iterable[bytes],
    values: Iterable[bytes | None],
    base_digest: int = 0,
) -> bytes:
    """The record of the epoch that led from ``base`` to ``stamp``."""
    stamps = stamp.epoch, stamp.nonce, base.epoch, base.nonce
    record = EpochRecord(_FORMAT, *stamps, ranges, list(keys), list(values), base_digest)
    return with_digest(_encoder.encode(record))


def decode_record(data: bytes) -> EpochRecord:
    """StoreDamagedError on anything but a record of this format."""
    try:
        record = _record_decoder.decode(without_digest(data, "The record of an epoch"))
    except msgspec.DecodeError as error:
        raise StoreDamagedError(f"The record of an epoch cannot be read: {error}.") from error
    if record.version != _FORMAT:
        raise StoreDamagedError(f"The record of an epoch has the format {record.version}, expected is {_FORMAT}.")
    return record


def encode_stamp(stamp: Stamp) -> bytes:
    return _encoder.encode(StoredStamp.of(stamp))


def decode_stamp(data: bytes) -> Stamp | None:
    """The stored stamp; None when it is of another format or from before the host's last start."""
    try:
        stored = _stamp_decoder.decode(data)
    except msgspec.DecodeError:
        return None
    return stored.current() if stored.version == _FORMAT else None


@lru_cache(maxsize=1)
def boot_id() -> str:
    """Changes with every start of the host; empty where the system has none."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


def changed_keys(ranges: Iterable[tuple[bytes, bytes]], keys: Sequence[Collection[bytes]]) -> ChangedKeys:
    """Ranges and keys of several epochs, each key once in an epoch, as one change: overlapping ranges joined, keys
    sorted and unique.
    """
    merged: list[tuple[bytes, bytes]] = []
    for start, end in sorted(ranges):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    # Most are in order already if they are those of one epoch.
    epochs = [each for each in keys if each]
    return ChangedKeys(tuple(merged), sorted(epochs[0] if len(epochs) == 1 else set[bytes]().union(*epochs)))


class RangeSet:
    """Disjoint, sorted ranges with a membership test."""

    def __init__(self, ranges: Iterable[tuple[bytes, bytes]]) -> None:
        pairs = list(ranges)
        self._starts = [start for start, _ in pairs]
        self._ends = [end for _, end in pairs]

    def __bool__(self) -> bool:
        return bool(self._starts)

    def __contains__(self, key: bytes) -> bool:
        at = bisect_right(self._starts, key) - 1
        return at >= 0 and key < self._ends[at]


def check_next(base: Stamp, stamp: Stamp, directory: object) -> None:
    """A transaction that began at ``base`` commits the epoch after it, and no other."""
    if stamp.epoch != base.epoch + 1:
        raise StoreVersionError(
            f"The store {directory} cannot be committed as epoch {stamp.epoch}: its transaction began at epoch "
            f"{base.epoch} and is the one of epoch {base.epoch + 1}."
        )


def wrong_version(directory: object, found: Stamp | None, expected: Stamp, reason: str = "") -> StoreVersionError:
    """The error of a store that cannot be brought to ``expected``."""
    seen = "it is missing or was written before the host's last start" if found is None else f"it is at {_text(found)}"
    detail = f" ({reason})" if reason else ""
    return StoreVersionError(
        f"The local store {directory} cannot be opened at {_text(expected)}: {seen}{detail}. "
        f"Its content must be restored from a checkpoint of epoch {expected.epoch}, or the job must go back to its "
        f"last checkpoint."
    )


def _text(stamp: Stamp) -> str:
    return f"epoch {stamp.epoch} (execution {stamp.nonce})"
