"""Which files a source reads, in which order, and how it remembers them."""

from __future__ import annotations

import fnmatch
import logging
import os
import pickle
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import fs

from holdfast.connectors.files.reader import FileOrder
from holdfast.connectors.files.seen import SeenFiles, key_of, owner_of
from holdfast.connectors.files.source import FileSource
from holdfast.connectors.files.tree import FileTree
from holdfast.errors import ConfigurationError, StorageError
from holdfast.storage.remote import ArrowStorage
from tests.connectors.driving import positions_of, read_all, read_epoch, readers_of


def put(path: Path, text: str, age: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")
    moment = time.time() - age
    os.utime(path, (moment, moment))
    return path


def continuous(path: Path) -> FileSource:
    return FileSource.text(str(path)).monitor_continuously(0)


def found(source: FileSource) -> list[str]:
    (reader,) = readers_of(source.process_static_file_set(), 1)
    return read_epoch(reader)


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*.json", ["a.json", "2024-01/b.json", "2024-02/deep/c.json"]),
        ("?.txt", ["d.txt"]),
        ("2024-*/*", ["2024-01/b.json", "2024-02/x.csv"]),
        ("2024-0[12]/**/*.json", ["2024-01/b.json", "2024-02/deep/c.json"]),
        ("2024-0[!1]/**", ["2024-02/deep/c.json", "2024-02/x.csv"]),
        ("**/{b,c}.json", ["2024-01/b.json", "2024-02/deep/c.json"]),
        ("a+b[1].txt", []),
    ],
)
def test_glob_patterns(tmp_path: Path, pattern: str, names: list[str]) -> None:
    for name in ("a.json", "d.txt", "2024-01/b.json", "2024-02/deep/c.json", "2024-02/x.csv", "a+b[1].txt"):
        put(tmp_path / name, name)

    assert sorted(found(FileSource.text(str(tmp_path)).matching(pattern))) == sorted(names)


@given(st.text("ab*?[]!.-", min_size=1, max_size=8), st.text("ab.-", min_size=1, max_size=5))
def test_patterns_of_names_are_those_of_the_shell(pattern: str, name: str) -> None:
    if "**" in pattern or "[]" in pattern or "[!]" in pattern or "-" in pattern:
        return
    assert FileTree([], pattern=pattern)._is_wanted(name) == fnmatch.fnmatchcase(name, pattern)


@pytest.mark.parametrize("pattern", ["", "/data/*.json"])
def test_wrong_patterns(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(ConfigurationError, match="relative to the source's path"):
        FileSource.text(str(tmp_path)).matching(pattern)


def test_subdirectories_can_be_left_out(tmp_path: Path) -> None:
    put(tmp_path / "a", "top")
    put(tmp_path / "deep" / "b", "deep")
    source = FileSource.text(str(tmp_path))

    assert found(source) == ["top", "deep"]
    assert found(source.recursive(False)) == ["top"]


def test_the_order_of_modification_times(tmp_path: Path) -> None:
    put(tmp_path / "a", "newest", age=10)
    put(tmp_path / "b", "oldest", age=30)
    put(tmp_path / "c", "between", age=20)
    put(tmp_path / "d", "between too", age=20)
    source = continuous(tmp_path).ordered_by(FileOrder.MODIFICATION_TIME)
    (reader,) = readers_of(source, 1)
    first = read_epoch(reader, 2)
    put(tmp_path / "e", "late", age=25)

    assert first == ["oldest", "between"]
    assert read_epoch(pickle.loads(pickle.dumps(reader))) == ["late", "between too", "newest"]
    assert found(continuous(tmp_path)) == ["newest", "oldest", "between", "between too", "late"]


def test_links_that_lead_back_are_not_followed(tmp_path: Path) -> None:
    put(tmp_path / "in" / "deep" / "a", "a")
    put(tmp_path / "elsewhere" / "b", "b")
    (tmp_path / "in" / "deep" / "loop").symlink_to(tmp_path / "in")
    (tmp_path / "in" / "self").symlink_to(tmp_path / "in" / "self")
    (tmp_path / "in" / "gone").symlink_to(tmp_path / "nowhere")
    (tmp_path / "in" / "other").symlink_to(tmp_path / "elsewhere")

    assert found(FileSource.text(str(tmp_path / "in"))) == ["a", "b"]


NAMES = ["with space", "100%.txt", "a%20b.txt", "\u00fcml\u00e4ut \u65e5\u672c.txt", "new\nline", "q?#&=", "a:b.txt"]


@pytest.mark.parametrize("parallelism", [1, 3])
def test_unusual_names(tmp_path: Path, parallelism: int) -> None:
    for name in NAMES:
        put(tmp_path / "d%41 \u00e4" / name, f"1 {name!r}\n2 {name!r}")
    source = continuous(tmp_path)
    readers = readers_of(source, parallelism)
    rows = [row for reader in readers for row in read_epoch(reader, 1)]
    rows += read_all(readers_of(source, parallelism + 1, positions_of(readers)))

    assert sorted(rows) == sorted(f"{n} {name!r}" for n in (1, 2) for name in NAMES)


def test_a_name_that_is_no_text_is_an_error(tmp_path: Path) -> None:
    with open(os.path.join(os.fsencode(tmp_path), b"\xff.txt"), "wb"):
        pass

    with pytest.raises(StorageError, match="not valid UTF-8; rename it"):
        found(FileSource.text(str(tmp_path)))


def test_a_file_that_goes_before_it_was_begun_is_left_out_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in "ab":
        put(tmp_path / name, name)
    # Listed once, and not again soon.
    (reader,) = readers_of(FileSource.text(str(tmp_path)).monitor_continuously(1_000_000), 1)
    assert read_epoch(reader, 1) == ["a"]
    (tmp_path / "b").unlink()
    with caplog.at_level(logging.WARNING):
        assert read_epoch(reader) == []

    assert "b was found and is gone before it was read" in caplog.text


def test_positions_stay_small_and_forget_what_is_gone(tmp_path: Path) -> None:
    for number in range(300):
        put(tmp_path / f"{number:03}.txt", str(number))
    readers = readers_of(continuous(tmp_path), 3)
    assert len(read_all(readers)) == 300
    stored = positions_of(readers)
    assert sum(len(position.seen) for position in stored) == 300 * 32
    assert [position for position in stored if position.path is not None] == []
    for number in range(100, 300):
        (tmp_path / f"{number:03}.txt").unlink()
    readers = readers_of(continuous(tmp_path), 2, stored)
    assert read_all(readers) == []

    assert sum(len(position.seen) for position in positions_of(readers)) == 100 * 32
    put(tmp_path / "250.txt", "a new one of an old name")
    assert read_all(readers) == ["a new one of an old name"]


def test_a_bounded_source_forgets_nothing_that_waits(tmp_path: Path) -> None:
    for number in range(30):
        put(tmp_path / f"{number}.txt", str(number))
    source = FileSource.text(str(tmp_path), bounded=True)
    readers = readers_of(source, 2)
    first = [row for reader in readers for row in read_epoch(reader, 4)]
    put(tmp_path / "later.txt", "later")
    rest = read_all(readers_of(source, 3, positions_of(readers)))

    assert sorted(first + rest, key=int) == [str(number) for number in range(30)]


paths = st.lists(st.text(min_size=1, max_size=3), unique=True, max_size=20)


@pytest.mark.parametrize("parallelism", [2, 3, 4])
@pytest.mark.parametrize(
    "name", ["part-{:05}.parquet", "part-{:05}-0f3a9c-c000.snappy.parquet", "2026-11-15-{:02}.json", "{}.csv.gz"]
)
def test_files_whose_names_count_are_dealt_in_turn(name: str, parallelism: int) -> None:
    owners = [owner_of(key_of(f"/data/2026/{name.format(number)}"), parallelism) for number in range(12)]
    assert owners == [(owners[0] + number) % parallelism for number in range(12)]



@given(paths, paths, st.integers(1, 5), st.integers(1, 5))
def test_files_that_were_seen_are_found_by_their_owners_after_any_rescaling(
    seen: list[str], others: list[str], before: int, after: int
) -> None:
    old = [SeenFiles() for _ in range(before)]
    for path in seen:
        old[owner_of(key_of(path), before)].add(path, len(path))
    new = [SeenFiles() for _ in range(after)]
    for number, files in enumerate(new):
        files.restore([each.packed() for each in old], number, after)
    for path in {*seen, *others}:
        sizes = [files.sizes([key_of(path)])[0] for files in new]
        owner = owner_of(key_of(path), after)
        assert sizes == [len(path) if number == owner and path in seen else None for number in range(after)]


def test_a_directory_of_a_storage_that_does_not_say_that_it_is_one(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1\n")
    tree = FileTree([str(tmp_path)])
    tree._roots = [ArrowStorage(str(tmp_path), fs.LocalFileSystem(), str(tmp_path), atomic_rename=False)]

    assert [file.path for file in tree.files()] == [str(tmp_path / "a.txt")]
