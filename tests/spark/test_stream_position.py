from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.errors import EpochError, RestoreError
from holdfast.spark.internals.stream_log import (
    StreamSource,
    check_position,
    decode_position,
    read_positions,
    write_fork,
)

FILES = StreamSource("json", lists_files=True, keeps_everything=True)
RATE = StreamSource("rate-micro-batch", keeps_everything=True)
METADATA = '{"batchWatermarkMs":77,"conf":{}}'


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def query(directory: Path, batches: int, *, rate: bool = True) -> Path:
    """The directory of a query over a file source, which found a file for every second micro-batch, and a rate source.
    It has written the offsets of its last micro-batch and not yet committed it.
    """
    for batch in range(batches):
        files = [f'{{"logOffset":{batch // 2}}}']
        rates = [f'{{"offset":{batch * 10}}}'] if rate else []
        write(directory / "offsets" / str(batch), "\n".join(["v1", METADATA, *files, *rates]))
        write(directory / "offsets" / f".{batch}.crc", "checksum")
        entry = {"path": f"{batch // 2}", "timestamp": 1, "batchId": batch // 2}
        write(directory / "sources" / "0" / str(batch // 2), f"v1\n{json.dumps(entry)}")
        if batch < batches - 1:
            write(directory / "commits" / str(batch), 'v1\n{"nextBatchWatermarkMs":77}')
    write(directory / "sources" / "1" / "0", "started at noon")
    return directory


def tree(directory: Path) -> dict[str, str]:
    files = [path for path in sorted(directory.rglob("*")) if path.is_file()]
    return {path.relative_to(directory).as_posix(): path.read_text() for path in files}


def test_a_fork_ends_with_the_micro_batch_although_the_query_went_on(tmp_path: Path) -> None:
    original = query(tmp_path / "query", 8)
    positions = read_positions(original, 5, [[FILES], [RATE]])
    positions = [decode_position(position.encode(), "stream") for position in positions]
    assert write_fork(tmp_path / "fork", positions, [[FILES], [RATE]]) == 5
    fork = tree(tmp_path / "fork")
    identity = json.loads(fork.pop("metadata"))["id"]
    entries = "\n".join(json.dumps({"path": f"{n}", "timestamp": 1, "batchId": n}) for n in range(3))
    assert fork == {
        "commits/5": 'v1\n{"nextBatchWatermarkMs":77}',
        "offsets/4": (original / "offsets" / "4").read_text(),
        "offsets/5": (original / "offsets" / "5").read_text(),
        # Of its log up to its own offset, which is not the number of the micro-batch.
        "sources/0/2.compact": f"v1\n{entries}",
        "sources/1/0": "started at noon",
    }
    write_fork(tmp_path / "other", positions, [[FILES], [RATE]])
    assert json.loads((tmp_path / "other" / "metadata").read_text())["id"] != identity


def test_a_fork_is_a_directory_that_can_be_forked_again(tmp_path: Path) -> None:
    positions = read_positions(query(tmp_path / "query", 8), 5, [[FILES], [RATE]])
    write_fork(tmp_path / "fork", positions, [[FILES], [RATE]])
    assert read_positions(tmp_path / "fork", 5, [[FILES], [RATE]]) == positions


def test_the_first_micro_batch_has_none_before_it(tmp_path: Path) -> None:
    positions = read_positions(query(tmp_path / "query", 1), 0, [[FILES, RATE]])
    assert write_fork(tmp_path / "fork", positions, [[FILES, RATE]]) == 0
    assert sorted(path.name for path in (tmp_path / "fork" / "offsets").iterdir()) == ["0"]


def test_in_front_of_the_first_micro_batch_only_what_sources_keep_themselves_is_known(tmp_path: Path) -> None:
    positions = read_positions(query(tmp_path / "query", 1), -1, [[FILES], [RATE]])
    assert write_fork(tmp_path / "fork", positions, [[FILES], [RATE]]) == -1
    assert sorted(tree(tmp_path / "fork")) == ["metadata", "sources/1/0"]


def test_streams_may_come_in_another_order_and_with_new_ones(tmp_path: Path) -> None:
    files, rate = read_positions(query(tmp_path / "query", 3), 2, [[FILES], [RATE]])
    assert write_fork(tmp_path / "fork", [None, rate, files], [[FILES], [RATE], [FILES]]) == 2
    assert (tmp_path / "fork" / "offsets" / "2").read_text().split("\n")[2:] == [
        "-",
        '{"offset":20}',
        '{"logOffset":1}',
    ]
    assert sorted(path.name for path in (tmp_path / "fork" / "sources").iterdir()) == ["1", "2"]


def test_streams_without_a_position_begin_anew(tmp_path: Path) -> None:
    assert write_fork(tmp_path / "fork", [None], [[FILES]]) == -1
    assert list(tree(tmp_path / "fork")) == ["metadata"]


def test_positions_of_two_cuts_are_refused(tmp_path: Path) -> None:
    directory = query(tmp_path / "query", 6)
    (early, _), (_, late) = (read_positions(directory, batch, [[FILES], [RATE]]) for batch in (2, 4))
    with pytest.raises(RestoreError, match=r"different micro-batches: \[2, 4\]"):
        write_fork(tmp_path / "fork", [early, late], [[FILES], [RATE]])


def test_other_sources_than_the_stored_ones_are_refused(tmp_path: Path) -> None:
    (position,) = read_positions(query(tmp_path / "query", 1, rate=False), 0, [[FILES]])
    check_position(position, [FILES], "stream")
    with pytest.raises(RestoreError, match=r"'stream' was stored with the sources \['json'\] and now has \['kafka'\]"):
        check_position(position, [StreamSource("kafka")], "stream")


@pytest.mark.parametrize("data", [b"read", b"", b"\x81\xa1a\x01"])
def test_the_state_of_something_else_is_refused(data: bytes) -> None:
    with pytest.raises(RestoreError, match="state of another operator under the id of the stream 'stream'"):
        decode_position(data, "stream")


def test_an_offset_log_of_another_form_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "offsets" / "0", f"v2\n{METADATA}\n0:1")
    with pytest.raises(EpochError, match="version 'v2' with 1 sources; expected 'v1' with 1"):
        read_positions(tmp_path, 0, [[RATE]])
