"""Code blocks of the documentation.

The language of a block says what becomes of it in the tests:

``python``   a complete program: it is run, in an empty directory, and must succeed; mypy --strict passes on it
``output``   right behind a program or commands: the lines that it prints, in any order (rows of different keys have
             none)
``py``       a part of a program: only its syntax is checked
``yaml``     settings: it is parsed, and its keys must be known
``sh``       commands: those of the tour and the tutorial are run

A program that imports from ``pyflink`` is run, and checked, with its imports changed.

A block with a file name behind its language is a file of its page: it is written, and the commands of the page use it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]

_FENCE = re.compile(r"^```(\w*)(?: +(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_EXPECTS = re.compile(r"\s*\Z")


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    language: str
    code: str
    #: Lines of the output block behind it; None where there is none.
    output: tuple[str, ...] | None = None
    #: The file that it is.
    file: str | None = None

    @property
    def name(self) -> str:
        return f"{self.page.relative_to(PROJECT)}:{self.line}"


def pages() -> list[Path]:
    return [PROJECT / "README.md", *sorted((PROJECT / "docs").rglob("*.md"))]


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text()
    blocks: list[Block] = []
    end = 0
    for match in _FENCE.finditer(text):
        language, file, code = match.groups()
        if language == "output":
            assert blocks and _EXPECTS.match(text[end : match.start()]), f"{page}: an output block follows no program"
            blocks.append(replace(blocks.pop(), output=tuple(code.splitlines())))
        else:
            blocks.append(Block(page, text.count("\n", 0, match.start()) + 1, language, code, file=file))
        end = match.end()
    return blocks


def all_blocks(language: str) -> list[Block]:
    return [block for page in pages() for block in blocks_of(page) if block.language == language]


def programs() -> list[Block]:
    """All that are run by themselves."""
    return [block for block in all_blocks("python") if block.file is None]


def translated(code: str) -> str:
    """A program for PyFlink with its imports changed, and nothing else; another one as it is."""
    return re.sub(r"^from pyflink\b", "from holdfast", code, flags=re.MULTILINE)
