"""The tour of the README and the tutorial, as they stand there, on Spark."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.docs.blocks import PROJECT, blocks_of
from tests.docs.reader import read_page

pytestmark = pytest.mark.slow

#: In the place of a person who watches until some checkpoints have completed.
_WATCH = """
watched() {
    for _ in $(seq 50); do
        holdfast checkpoints "$1" --json 2>/dev/null | grep -q '"completed": [1-9]' && return 0
        sleep 2
    done
    return 1
}
"""
_FOLLOW = re.compile(r"^holdfast checkpoints --follow (\S+).*$", re.MULTILINE)


def test_the_tour(tmp_path: Path) -> None:
    commands = [block for block in blocks_of(PROJECT / "README.md") if "$JOB" in block.code]
    watched = [replace(block, code=_FOLLOW.sub(r"watched \1", block.code)) for block in commands]
    done = read_page(watched, tmp_path, f"ln -s {PROJECT / 'examples'} examples\n{_WATCH}")
    assert done.code == 0, done.report
    lines = [line for part in done.printed for line in part]
    # Asked for at once, it may still wait for its first attempt.
    listed = [line for line in done.printed[0] if " : counting (" in line]
    assert len(listed) == 1 and re.search(r"\((CREATED|INITIALIZING|RUNNING)\)$", listed[0]), done.report
    assert "You can resume your program from this savepoint with the run command." in lines
    assert any(line.endswith(": counting (FINISHED)") for line in lines)
    assert re.fullmatch(r"\d+ results of 10 digits: every count exactly once, without a gap\.", lines[-1])


def test_the_tutorial(tmp_path: Path) -> None:
    blocks = [b for b in blocks_of(PROJECT / "docs" / "tutorial.md") if b.file is not None or b.language == "sh"]
    done = read_page(blocks, tmp_path)
    assert done.code == 0, done.report
    commands = [block for block in blocks if block.file is None]
    for block, printed in zip(commands, done.printed[:-1], strict=True):
        if block.output is not None:
            assert printed == list(block.output), f"{block.name}\n{done.report}"
