"""What goes past a query: a file with a task's envelopes, from the function in front of the query to the one behind it.

Both functions belong to one task of an engine, and run in two processes of one host. The first one ends before the
second one has its last row.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import msgspec

from holdfast.errors import EpochError
from holdfast.runtime.envelope import Envelope
from holdfast.storage.private_files import private_opener

_DIGEST = "sha256"
_PART = 1 << 20


class _Head(msgspec.Struct, frozen=True, array_like=True):
    slot: int
    edge: int
    channel: int
    number: int
    sender: int
    sequence: int
    size: int


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Head)
_LENGTH_BYTES = 4


class SetAside:
    """Writes the file. Under a temporary name until it is whole, and with a seal by ``secret``, the plan's."""

    def __init__(self, path: Path, secret: bytes) -> None:
        self._path = path
        self._secret = secret

    def __enter__(self) -> SetAside:
        self._temporary = self._path.with_suffix(".tmp")
        self._file: BinaryIO = open(self._temporary, "wb", opener=private_opener)
        self._seal = _seal_of(self._path, self._secret)
        return self

    def add(self, envelope: Envelope) -> None:
        payload = memoryview(envelope.payload)
        e = envelope
        head = _encoder.encode(_Head(e.slot, e.edge, e.channel, e.number, e.sender, e.sequence, len(payload)))
        parts: tuple[bytes | memoryview, ...] = (len(head).to_bytes(_LENGTH_BYTES, "little"), head, payload)
        for part in parts:
            self._file.write(part)
            self._seal.update(part)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._file:
            if kind is None:
                self._file.write(self._seal.digest())
        if kind is None:
            self._temporary.replace(self._path)
        else:
            self._temporary.unlink(missing_ok=True)


def read_set_aside(path: Path, secret: bytes) -> Iterator[Envelope]:
    """The envelopes of the file, in their order; the file is gone then. EpochError when something else wrote it."""
    try:
        file: BinaryIO = open(path, "rb")  # noqa: SIM115 - closed below
    except FileNotFoundError:
        raise EpochError(
            f"What was to go past a query is not there: {path}. Both functions of its task run on one host and share "
            "the local directory; see 'holdfast.state.local-dir'. The job goes back to its last checkpoint."
        ) from None
    path.unlink()
    with file:
        end = _verified_size(file, path, secret)
        while file.tell() < end:
            length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
            head = _decoder.decode(file.read(length))
            payload = file.read(head.size)
            yield Envelope(head.slot, head.edge, head.channel, head.number, head.sender, head.sequence, payload)


def _verified_size(file: BinaryIO, path: Path, secret: bytes) -> int:
    """Where the seal begins. The file is read whole before anything in it counts."""
    seal = _seal_of(path, secret)
    end = rest = max(0, file.seek(0, 2) - seal.digest_size)
    file.seek(0)
    while rest:
        part = file.read(min(_PART, rest))
        seal.update(part)
        rest -= len(part)
    if not hmac.compare_digest(seal.digest(), file.read()):
        raise EpochError(
            f"{path} is damaged, or this task has not written it: it is not used. The job goes back to its last "
            "checkpoint."
        )
    file.seek(0)
    return end


def _seal_of(path: Path, secret: bytes) -> hmac.HMAC:
    """The name says which task it is of."""
    return hmac.new(secret, path.name.encode(), _DIGEST)
