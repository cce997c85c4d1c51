"""What cannot be read goes to a side output where the program asks for that."""

from __future__ import annotations

import errno
import gzip
import io
import pickle
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from holdfast.connectors.files.format import BAD_RECORD_TYPE
from holdfast.connectors.files.source import FileSource
from holdfast.errors import ProgramError, StorageError
from holdfast.runtime.batch import SideBatch
from holdfast.runtime.output_tag import OutputTag
from holdfast.runtime.source import SourceReader
from holdfast.storage.local import LocalStorage
from tests.connectors.driving import limit_of, positions_of, readers_of

BAD = OutputTag("bad", BAD_RECORD_TYPE)


def epoch_of(reader: SourceReader, rows: int = 1 << 30) -> tuple[list[Any], list[Any]]:
    """Rows, and what was put aside."""
    good: list[Any] = []
    bad: list[Any] = []
    for batch in reader.read(limit_of(rows)):
        assert len(batch)
        (bad if isinstance(batch, SideBatch) else good).extend(batch.values)
    assert len(good) + len(bad) <= rows or rows == 1
    return good, bad


def read(source: FileSource, epoch: int = 1 << 30) -> tuple[list[Any], list[Any]]:
    """All of it, over readers that travel and are restored."""
    bounded = source.with_bad_records_to(BAD).process_static_file_set()
    (reader,) = readers_of(bounded, 1)
    good, bad = [], []
    while not reader.ended:
        rows, aside = epoch_of(reader, epoch)
        good += rows
        bad += aside
        (reader,) = readers_of(bounded, 1, positions_of([pickle.loads(pickle.dumps(reader))]))
    return good, bad


@pytest.mark.parametrize("epoch", [1, 3, 1 << 30])
def test_bad_lines_are_put_aside_one_by_one(tmp_path: Path, epoch: int) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"id": 1}\n{"id": "x"}\n\n{"id": 2}\nnonsense\n{"id": 3}\n{"id": 4')
    good, bad = read(FileSource.json(str(path), "id BIGINT"), epoch)

    assert [row.id for row in good] == [1, 2, 3]
    assert [(row.path, row.position, row.record) for row in bad] == [
        (str(path), 10, '{"id": "x"}'),
        (str(path), 33, "nonsense"),
        (str(path), 52, '{"id": 4'),
    ]
    assert all(row.reason for row in bad)


@pytest.mark.parametrize("seed", range(5))
def test_any_mixture_of_good_and_bad_lines(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    lines = [(number, dice.random() < dice.choice([0.02, 0.5, 1.0])) for number in range(500)]
    text = "".join(f"no{number},x\n" if bad else f"{number},y\n" for number, bad in lines)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(f"id,name\n{text}".encode()))
    good, bad = read(FileSource.csv(str(tmp_path), "id BIGINT, name STRING"), dice.choice([7, 100, 1 << 30]))

    assert [row.id for row in good] == [number for number, is_bad in lines if not is_bad]
    assert [row.record for row in bad] == [f"no{number},x" for number, is_bad in lines if is_bad]


def test_lines_of_another_charset(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"good\n\xff\xfe\n")
    good, bad = read(FileSource.text(str(tmp_path)))

    assert good == ["good"]
    assert [(row.position, row.record) for row in bad] == [(5, "\ufffd\ufffd")]


def test_files_that_cannot_be_read_are_put_aside_from_where_it_ends(tmp_path: Path) -> None:
    whole = gzip.compress(b"".join(b'{"id": %d, "x": "%1000d"}\n' % (n, n) for n in range(12_000)))
    (tmp_path / "a.json.gz").write_bytes(whole[: len(whole) - 8])
    (tmp_path / "b.json").write_bytes(b'{"id": 7}\n')
    (tmp_path / "c.json.zst").write_bytes(b"x")
    good, bad = read(FileSource.json(str(tmp_path), "id BIGINT"))

    # The first block of lines was delivered before the end was found to be missing.
    assert good[-1].id == 7
    assert [row.id for row in good[:-1]] == list(range(len(good) - 1))
    assert [(Path(row.path).name, row.record) for row in bad] == [("a.json.gz", None), ("c.json.zst", None)]
    assert bad[0].position > 0
    assert "cannot be decompressed" in bad[0].reason


def test_parquet_files_with_other_columns_or_none_at_all(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1], "more": ["x"]}), tmp_path / "good.parquet")
    pq.write_table(pa.table({"name": ["x"]}), tmp_path / "missing.parquet")
    pq.write_table(pa.table({"id": ["x"]}), tmp_path / "other.parquet")
    content = (tmp_path / "good.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(content[: len(content) // 2])
    good, bad = read(FileSource.parquet(str(tmp_path), "id BIGINT"))

    assert [row.id for row in good] == [1]
    assert [Path(row.path).name for row in bad] == ["cut.parquet", "missing.parquet", "other.parquet"]
    assert ["cannot be read as Parquet" in row.reason for row in bad] == [True, False, False]
    assert "column 'id' is string, which does not fit int64" in bad[2].reason


def test_a_file_that_is_gone_or_changed_is_an_error_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("a\n")
    source = FileSource.text(str(tmp_path), bounded=True).with_bad_records_to(BAD)
    (reader,) = readers_of(source, 1)
    path.write_text("a\nb\n")

    with pytest.raises(StorageError, match="had 2 bytes when it was found and has 4 now"):
        epoch_of(reader)
    path.unlink()
    with pytest.raises(StorageError, match="is gone"):
        epoch_of(reader)


def test_a_tag_of_another_type_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match="BAD_RECORD_TYPE"):
        FileSource.text(str(tmp_path)).with_bad_records_to(OutputTag("bad", "id BIGINT"))


class Failing(io.BytesIO):
    """A file whose storage fails behind the first read."""

    def read(self, size: int | None = -1) -> bytes:
        if self.tell() > 0:
            raise OSError(errno.EIO, "the storage is away")
        return super().read(size)


@pytest.mark.parametrize("kind", ["json.gz", "parquet"])
@pytest.mark.parametrize("away", [False, True], ids=["a-moment", "longer"])
@pytest.mark.parametrize("put_aside", [False, True], ids=["ends-the-job", "put-aside"])
def test_a_storage_that_fails_does_not_make_a_file_bad(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, away: bool, put_aside: bool
) -> None:
    path = tmp_path / f"a.{kind}"
    if kind == "parquet":
        pq.write_table(pa.table({"id": list(range(1_000))}), path)
        source = FileSource.parquet(str(tmp_path), "id BIGINT", bounded=True)
    else:
        path.write_bytes(gzip.compress(b"".join(b'{"id": %d}\n' % number for number in range(1_000))))
        source = FileSource.json(str(tmp_path), "id BIGINT", bounded=True)
    (reader,) = readers_of(source.with_bad_records_to(BAD) if put_aside else source, 1)
    opens = 0

    @contextmanager
    def opened(self: LocalStorage, name: str) -> Iterator[BinaryIO]:
        nonlocal opens
        opens += 1
        with open(self.location(name), "rb") as stream:
            # The first look is for the size only.
            yield Failing(stream.read()) if opens == 2 else stream

    def lost(self: LocalStorage, name: str, offset: int = 0, length: int | None = None) -> bytes:
        raise StorageError("the storage is away")

    with monkeypatch.context() as broken:
        broken.setattr(LocalStorage, "open_input", opened)
        if away:
            broken.setattr(LocalStorage, "read", lost)
            with pytest.raises(StorageError, match="the storage is away"):
                epoch_of(reader)
        else:
            good, bad = epoch_of(reader)
    if away:
        good, bad = epoch_of(reader)
    assert [row.id for row in good] == list(range(1_000))
    assert bad == []
