from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.checkpoint import metadata_format
from holdfast.checkpoint.metadata_format import decode_metadata, encode_metadata
from holdfast.errors import CorruptFileError, RestoreError
from holdfast.state.handles import FileHandle, RawKeyedSnapshot
from holdfast.storage.checksum import checksum
from tests.checkpoint.samples import keyed, keyed_file, metadata, record, snapshot

SAMPLE = metadata(
    7,
    [
        record(
            subtasks=[
                snapshot(
                    0,
                    keyed=keyed(keyed_file("shared/1-7-a")),
                    operator_state=FileHandle("", 3, checksum(b"\x00\xff\n"), b"\x00\xff\n"),
                    raw_keyed=RawKeyedSnapshot(3, 9, FileHandle("chk-7/1-raw", 8, "0" * 32)),
                    raw_operator=FileHandle("", 1, checksum(b"r"), b"r"),
                    transactions=(b"\x00\x01", b""),
                ),
                snapshot(1),
            ],
            parallelism=2,
        )
    ],
    {"note": "é", "watermark": -(2**63), "nested": [1, {"a": None}]},
)
ENCODED = encode_metadata(SAMPLE)


def test_round_trip() -> None:
    assert decode_metadata(ENCODED, "file") == SAMPLE


def test_the_header_and_the_body_can_be_read_by_people() -> None:
    header, _, body = ENCODED.partition(b"\n")
    word, version, digest, length = header.decode().split(" ")
    assert (word, version) == ("holdfast-metadata", "1")
    assert (digest, int(length)) == (checksum(b"1\n", body), len(body))
    assert msgspec.json.decode(body)["checkpoint_id"] == 7


@pytest.mark.parametrize("flip", [0x01, 0x20, 0x80, 0xFF])
def test_every_changed_byte_is_detected(flip: int) -> None:
    for position in range(len(ENCODED)):
        damaged = bytearray(ENCODED)
        damaged[position] ^= flip
        with pytest.raises(CorruptFileError) as caught:
            decode_metadata(bytes(damaged), "chk-7/_metadata")
        assert caught.value.path == "chk-7/_metadata"


def test_every_value_of_every_header_byte_is_detected() -> None:
    for position in range(ENCODED.index(b"\n") + 1):
        for value in range(256):
            damaged = bytearray(ENCODED)
            damaged[position] = value
            if bytes(damaged) != ENCODED:
                with pytest.raises(CorruptFileError):
                    decode_metadata(bytes(damaged), "file")


def test_every_cut_is_detected() -> None:
    for length in range(len(ENCODED)):
        with pytest.raises(CorruptFileError):
            decode_metadata(ENCODED[:length], "file")


@given(st.binary(min_size=1, max_size=20))
def test_what_follows_is_refused(rest: bytes) -> None:
    with pytest.raises(CorruptFileError, match="bytes follow the header"):
        decode_metadata(ENCODED + rest, "file")


def test_a_newer_format_is_named_and_not_called_damage() -> None:
    body = b"{}"
    data = f"holdfast-metadata 9 {checksum(b'9', chr(10).encode(), body)} {len(body)}\n".encode() + body
    with pytest.raises(RestoreError, match=r"format version 9.*reads \[1\]"):
        decode_metadata(data, "file")


def test_a_body_of_another_shape_is_refused() -> None:
    body = b'{"checkpoint_id": "seven"}'
    data = f"holdfast-metadata 1 {checksum(b'1', chr(10).encode(), body)} {len(body)}\n".encode() + body
    with pytest.raises(CorruptFileError, match="not that of format version 1"):
        decode_metadata(data, "file")


def test_every_written_version_has_a_reader() -> None:
    assert set(range(1, metadata_format.CURRENT_VERSION + 1)) == set(metadata_format._READERS)


def test_a_checkpoint_of_version_1_stays_readable() -> None:
    """Bytes that version 1 wrote, kept as they are."""
    stored = (
        b"holdfast-metadata 1 b0ad2b9cdcf18b4abf44bf589902d334 327\n"
        b'{"checkpoint_id":3,"checkpoint_type":"CHECKPOINT","job_id":"job-1","job_name":"a job","attempt":1,"epoch":30,'
        b'"trigger_timestamp":1000,"completion_timestamp":2000,"key_hash":"spark-xxhash64-42","operators":[{"operator_id":"ab",'
        b'"uid":null,"name":"name of ab","parallelism":1,"max_parallelism":128,"subtasks":[]}],"properties":{}}'
    )
    assert decode_metadata(stored, "file") == metadata(3, [record("ab", uid=None)])
