"""Code blocks of the documentation.

The language of a block says what becomes of it in the tests:

``python``   a complete program: it is run, in an empty directory, and must succeed
``output``   right behind a program: the lines that it prints, in any order (rows of different keys have none)
``py``       a part of a program: only its syntax is checked
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_EXPECTS = re.compile(r"\s*\Z")


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    language: str
    code: str
    #: Lines of the output block behind it; None where there is none.
    output: tuple[str, ...] | None = None

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
        language, code = match.groups()
        if language == "output":
            assert blocks and _EXPECTS.match(text[end : match.start()]), f"{page}: an output block follows no program"
            last = blocks.pop()
            blocks.append(Block(last.page, last.line, last.language, last.code, tuple(code.splitlines())))
        else:
            blocks.append(Block(page, text.count("\n", 0, match.start()) + 1, language, code))
        end = match.end()
    return blocks


def all_blocks(language: str) -> list[Block]:
    return [block for page in pages() for block in blocks_of(page) if block.language == language]
