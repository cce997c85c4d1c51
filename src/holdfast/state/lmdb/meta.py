"""What an LMDB store says of itself: its stamp, and the digest of its entries."""

from __future__ import annotations

from itertools import islice
from typing import Any

from holdfast.state.content_digest import NOTHING, with_entries
from holdfast.state.epoch_log import decode_stamp, encode_stamp
from holdfast.state.lmdb import long_keys
from holdfast.state.store import Stamp

_STAMP, _DIGEST = b"stamp", b"digest"
_DIGEST_BYTES = 8
#: Rows that are read at a time.
_ROWS = 4096


def put_meta(txn: Any, database: Any, stamp: Stamp, digest: int) -> None:
    txn.put(_STAMP, encode_stamp(stamp), db=database)
    txn.put(_DIGEST, digest.to_bytes(_DIGEST_BYTES, "big"), db=database)


def stored_stamp(txn: Any, database: Any) -> Stamp | None:
    data = txn.get(_STAMP, db=database)
    return None if data is None else decode_stamp(data)


def stored_digest(txn: Any, database: Any) -> int | None:
    """None in a store that was written before there were digests."""
    data = txn.get(_DIGEST, db=database)
    return None if data is None else int.from_bytes(data, "big")


def content_digest(txn: Any, database: Any) -> int | None:
    """The digest of the rows that are there; None where they are more or fewer than the database counts."""
    rows = iter(txn.cursor(database))
    digest, left = NOTHING, txn.stat(database)["entries"]
    while some := list(islice(rows, _ROWS)):
        left -= len(some)
        if left < 0:
            return None
        keys, values = zip(*map(long_keys.unpack, some), strict=True)
        digest = with_entries(digest, keys, values)
    return digest if left == 0 else None
