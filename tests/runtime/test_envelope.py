"""Messages of the exchange: packed, unpacked, and given a barrier without touching their rows."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from holdfast.runtime.envelope import (
    EXCHANGE_DDL,
    EXCHANGE_SCHEMA,
    Barrier,
    ChannelStatus,
    Header,
    pack,
    unpack_header,
    with_barrier,
)

_int64 = st.integers(-(1 << 63), (1 << 63) - 1)
_barriers = st.builds(
    Barrier,
    attempt=st.integers(0, 1 << 40),
    epoch=st.integers(0, 1 << 40),
    checkpoint_id=st.none() | st.integers(1, 1 << 40),
    checkpoint_type=st.none() | st.sampled_from(["CHECKPOINT", "SAVEPOINT", "SYNC_SAVEPOINT"]),
    nonce=st.text(max_size=20),
    count=st.integers(0, 1 << 31),
)
_headers = st.builds(
    Header,
    barrier=st.none() | _barriers,
    status=st.none() | st.builds(ChannelStatus, watermark=_int64, idle=st.booleans(), ended=st.booleans()),
    key_form=st.sampled_from(["", "columns", "long", "string", "encoded"]),
    rows=st.integers(0, 1 << 31),
)


@given(_headers, st.binary(max_size=200), st.booleans())
def test_what_is_packed_comes_back(header: Header, body: bytes, as_buffer: bool) -> None:
    payload = pack(header, pa.py_buffer(body) if as_buffer else body)
    found, rest = unpack_header(pa.py_buffer(payload) if as_buffer else payload)
    assert found == header
    assert bytes(rest) == body


@given(_headers, st.binary(max_size=200), _barriers)
def test_a_barrier_is_added_and_nothing_else_changes(header: Header, body: bytes, barrier: Barrier) -> None:
    found, rest = unpack_header(with_barrier(pack(header, body), barrier))
    assert found == Header(barrier, header.status, header.key_form, header.rows)
    assert bytes(rest) == body


def test_an_empty_header_costs_few_bytes() -> None:
    assert len(pack(Header())) <= 12


def test_the_exchange_has_one_schema_on_both_sides() -> None:
    names = {"int32": "int", "binary": "binary"}
    assert ", ".join(f"{field.name} {names[str(field.type)]}" for field in EXCHANGE_SCHEMA) == EXCHANGE_DDL
