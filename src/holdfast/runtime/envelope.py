"""Messages of the exchange: the rows that Spark shuffles between two levels.

A link is a pair of tasks of neighbouring levels. Envelopes of a link are numbered (``sequence``); the last one
carries the link's barrier with their count, so that a receiver knows when it has everything. An edge of the job graph
may pass through several links: ``channel`` and ``number`` say which subtask sent an envelope and in which order, and
stay as they are when a level passes it on.
"""

from __future__ import annotations

import struct

import msgspec
import pyarrow as pa

#: Edge numbers of envelopes that belong to no edge.
CONTROL_EDGE = -1
COORDINATOR_EDGE = -2
#: Of a task that has failed, to every task of the next level. It sorts before all others.
FAILURE_EDGE = -3

#: Tasks of different producers of one level are told apart by this many senders each.
GROUP_SIZE = 1 << 20

EXCHANGE_SCHEMA = pa.schema(
    [
        pa.field("slot", pa.int32()),
        pa.field("edge", pa.int32()),
        pa.field("channel", pa.int32()),
        pa.field("number", pa.int32()),
        pa.field("sender", pa.int32()),
        pa.field("sequence", pa.int32()),
        pa.field("payload", pa.binary()),
    ]
)
EXCHANGE_DDL = "slot int, edge int, channel int, number int, sender int, sequence int, payload binary"


class Barrier(msgspec.Struct, frozen=True, array_like=True):
    """Closes one link's epoch. ``count`` envelopes came before it or carry it."""

    attempt: int
    epoch: int
    checkpoint_id: int | None
    checkpoint_type: str | None
    nonce: str
    count: int
    #: Of a snapshot that somebody asked for.
    trigger_id: str = ""


class ChannelStatus(msgspec.Struct, frozen=True, array_like=True):
    """What a channel of an edge promises after its rows: its watermark, whether it is idle, whether it ended."""

    watermark: int
    idle: bool
    ended: bool


class Header(msgspec.Struct, frozen=True, array_like=True):
    """What travels before the rows of an envelope."""

    barrier: Barrier | None = None
    status: ChannelStatus | None = None
    #: How the keys beside the rows are encoded (see partitioners.KeyColumn); empty when the rows have none.
    key_form: str = ""
    rows: int = 0
    #: Why the task, or one before it, has failed. Then nothing else counts.
    failure: str = ""
    #: Whether the kinds of the rows are among their columns.
    row_kinds: bool = False


class Envelope:
    """One row of the exchange."""

    __slots__ = ("channel", "edge", "number", "payload", "sender", "sequence", "slot")

    def __init__(
        self, slot: int, edge: int, channel: int, number: int, sender: int, sequence: int, payload: bytes | pa.Buffer
    ) -> None:
        self.slot = slot
        self.edge = edge
        self.channel = channel
        self.number = number
        self.sender = sender
        self.sequence = sequence
        self.payload = payload


_LENGTH = struct.Struct("<I")
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Header)


def pack(header: Header, body: bytes | pa.Buffer = b"") -> bytes:
    head = _encoder.encode(header)
    return b"".join((_LENGTH.pack(len(head)), head, memoryview(body)))


def unpack_header(payload: bytes | pa.Buffer) -> tuple[Header, memoryview]:
    view = memoryview(payload)
    (length,) = _LENGTH.unpack_from(view)
    return _decoder.decode(view[4 : 4 + length]), view[4 + length :]


def with_barrier(payload: bytes, barrier: Barrier) -> bytes:
    """This message, carrying the link's barrier too."""
    header, body = unpack_header(payload)
    return pack(msgspec.structs.replace(header, barrier=barrier), body)
