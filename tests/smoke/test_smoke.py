"""The least that must work on any line of Spark: a program, a kill, a stream and its fork, a DataFrame. One Spark
application runs all of them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.blocks import PROJECT, blocks_of
from tests.docs.programs import Done, ProgramHost
from tests.integration.programs import published
from tests.kit.driver import python_path

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
FILES, ROWS, KEYS = 5, 14, 3


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProgramHost]:
    with ProgramHost(tmp_path_factory.mktemp("host"), {"PYTHONPATH": python_path()}) as host:
        yield host


def run(host: ProgramHost, code: str, directory: Path, *arguments: str) -> Done:
    directory.mkdir()
    done = host.run(code, directory, arguments, seconds=180)
    assert done.code == 0, f"ended with {done.code}\n{done.stdout}\n{done.stderr[-6000:]}"
    return done


def test_the_first_program(host: ProgramHost, tmp_path: Path) -> None:
    page = PROJECT / "docs" / "how-to" / "first-program.md"
    (program,) = [block for block in blocks_of(page) if block.language == "python"]
    done = run(host, program.code, tmp_path / "program")
    assert program.output is not None
    assert sorted(done.stdout.splitlines()) == sorted(program.output)


def test_a_job_whose_worker_is_killed(host: ProgramHost, tmp_path: Path) -> None:
    rows, keys = 1_200, 11
    done = run(host, (HERE / "killed_job.py").read_text(), tmp_path / "program", str(tmp_path))
    assert (tmp_path / "killed").exists()
    assert "restarts=1" in done.stdout.splitlines()
    out = published(tmp_path / "out")
    assert [number for number, _ in out] == list(range(rows))
    # Two subtasks read the numbers, so those of a key may come in any order.
    places = [(key, place) for key in range(keys) for place in range(1, len(range(key, rows, keys)) + 1)]
    assert sorted((number % keys, place) for number, place in out) == places


def test_a_stream_that_is_killed_and_forked(host: ProgramHost, tmp_path: Path) -> None:
    write_files(tmp_path / "in")
    (tmp_path / "kill").touch()
    code = (HERE / "stream_job.py").read_text()
    done = run(host, code, tmp_path / "program", str(tmp_path), "out", "until", str(FILES * ROWS))
    assert not (tmp_path / "kill").exists()
    assert "restarts=1" in done.stdout.splitlines()
    assert published(tmp_path / "out") == counted(FILES)
    completed = (tmp_path / "checkpoints" / "out").glob("chk-*/_metadata")
    in_order = sorted(completed, key=lambda path: path.stat().st_mtime_ns)
    # The first ones may be of epochs before Spark had read a file.
    assert any(0 < forked(host, tmp_path, path.parent) < FILES for path in in_order[1:])


def forked(host: ProgramHost, directory: Path, checkpoint: Path) -> int:
    """How many files the checkpoint had read. A job that begins with it reads the others, and no more."""
    name = f"from-{checkpoint.name}"
    code = (HERE / "stream_job.py").read_text()
    run(host, code, directory / f"fork-{checkpoint.name}", str(directory), name, "from", str(checkpoint))
    again = published(directory / name)
    read, rest = divmod(FILES * ROWS - len(again), ROWS)
    assert rest == 0
    # Each key goes on where the checkpoint had left it.
    assert again == sorted(set(counted(FILES)) - set(counted(read)))
    return read


def test_a_bounded_data_frame(host: ProgramHost, tmp_path: Path) -> None:
    done = run(host, (HERE / "data_frame_job.py").read_text(), tmp_path / "program")
    sums = [(key, sum(number for number in range(0, 1_000, 2) if number % 7 == key)) for key in range(7)]
    assert done.stdout.split("\n")[0] == " ".join(map(str, sums))


def write_files(directory: Path) -> None:
    """One for each micro-batch, in the order of their times; the last row of the fourth one is the victim."""
    directory.mkdir()
    for number in range(FILES):
        values = range(number * ROWS, (number + 1) * ROWS)
        rows = [{"k": value % KEYS, "victim": value == 4 * ROWS - 1} for value in values]
        file = directory / f"{number}.json"
        file.write_text("\n".join(map(json.dumps, rows)))
        os.utime(file, (1_700_000_000 + number,) * 2)


def counted(files: int) -> list[tuple[int, int]]:
    """What counting the rows of each key must give."""
    total = files * ROWS
    return sorted((key, n) for key in range(KEYS) for n in range(1, len(range(key, total, KEYS)) + 1))
