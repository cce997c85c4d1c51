"""Words of our own that have a term in Flink or Spark, and docstrings that need the line above: ``make check`` refuses
both. A term that everybody knows needs no explanation.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]

#: What is not to come back, and what to say.
TERMS = {
    r"by the clock": "processing time",
    r"go(?:es|ing)? around (?:at )?64|\bwould go around|sums? (?:that|could|would) go(?:es)? around": "overflows",
    r"second compiler": "C2 compiler",
    r"[Ff]unctions? (?:are|is|were) told\b|[Tt]ells? functions|[Hh]ears? of (?:state|checkpoints?)\b": "notified",
    r"dealt (?:out )?(?:to the subtasks )?in turn": "round-robin",
    r"go(?:es)? through the loop": "row by row",
    r"windows (?:that )?become one\b": "merge",
}
#: Beginnings of docstrings that say whose thing it is, and not what it is.
_DANGLING = re.compile(r"(Of|Those|That|The same)\b")
#: Beginnings of docstrings of classes that go on from the name of the class, as those of methods may from their
#: signature.
_DANGLING_CLASS = re.compile(
    r"(Also|Around|As|Asked|Behind|Between|By|Called|Chosen|For|From|Given|Held|In|It|Its|Like|Made|None|Not|On|"
    r"Picklable|See|These|They|Whoever|With|Without)\b"
)
#: Beginnings of comments on attributes that need the attribute above. "Of ..." does not: its attribute is the next
#: line.
_DANGLING_COMMENT = re.compile(r"\s*#: (Those|That|The same)\b")


def main() -> int:
    wrong = [*_home_made_words(), *_dangling_texts()]
    print("\n".join(wrong) or "No home-made words, no docstring that needs the line above.")
    return 1 if wrong else 0


def home_made_words(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        for pattern, term in TERMS.items():
            if found := re.search(pattern, line):
                yield number, f"'{found[0]}' is a word of our own: say '{term}'"


def dangling_docstrings(source: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node) or ""
            found = _DANGLING.match(text) or (isinstance(node, ast.ClassDef) and _DANGLING_CLASS.match(text))
            if found:
                place = getattr(node, "lineno", 1)
                yield place, f"a docstring that begins with '{found[0]}': say what the thing is"


def dangling_comments(source: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(source.splitlines(), 1):
        if found := _DANGLING_COMMENT.match(line):
            yield number, f"a comment on an attribute that begins with '{found[1]}': say what the attribute is"


def _home_made_words() -> Iterator[str]:
    pages = [PROJECT / "README.md", *(PROJECT / "docs").rglob("*.md"), *(PROJECT / "src").rglob("*.py")]
    return (f"{_place(page)}:{line}: {why}" for page in pages for line, why in home_made_words(page.read_text()))


def _dangling_texts() -> Iterator[str]:
    modules = (PROJECT / "src").rglob("*.py")
    sources = ((one, one.read_text()) for one in modules)
    found = ((one, [*dangling_docstrings(text), *dangling_comments(text)]) for one, text in sources)
    return (f"{_place(one)}:{line}: {why}" for one, reasons in found for line, why in reasons)


def _place(path: Path) -> str:
    return str(path.relative_to(PROJECT))


if __name__ == "__main__":
    sys.exit(main())
