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
    r"stands? for several": "partial aggregates",
}
#: Between two words of a term: a line may end there, also one of a comment.
_GAP = r"\s+(?:#:?\s+)?"
#: Beginnings of docstrings that say whose thing it is, and not what it is.
_DANGLING = re.compile(r"(Of|Those|That|The same)\b")
_NOTHING = re.compile(r"(?!)")
#: Beginnings of docstrings of classes that go on from the name of the class, as those of methods may from their
#: signature.
_DANGLING_CLASS = re.compile(
    r"(Also|Around|As|Asked|Behind|Between|By|Called|Chosen|For|From|Given|Held|In|It|Its|Like|Made|None|Not|On|"
    r"Picklable|See|These|They|Whoever|With|Without)\b"
)
#: Beginnings of docstrings of functions that are no sentence without the name of the function.
_DANGLING_FUNCTION = re.compile(r"(Also|Around|By|Its|These|With|Without)\b")
#: Beginnings of comments on attributes that need the attribute above. "Of ..." does not: its attribute is the next
#: line.
_DANGLING_COMMENT = re.compile(r"\s*#: (Those|That|The same)\b")


def main() -> int:
    wrong = [*_home_made_words(), *_dangling_texts()]
    print("\n".join(wrong) or "No home-made words, no docstring that needs the line above.")
    return 1 if wrong else 0


def home_made_words(text: str) -> Iterator[tuple[int, str]]:
    """Each place, also where a term goes on in the next line."""
    for pattern, term in TERMS.items():
        for found in re.finditer(pattern.replace(" ", _GAP), text):
            words = " ".join(found[0].split())
            yield 1 + text.count("\n", 0, found.start()), f"'{words}' is a word of our own: say '{term}'"


def dangling_docstrings(source: str, of_functions: bool = False) -> Iterator[tuple[int, str]]:
    """Docstrings that need the line above; ``of_functions``: or the name of their function."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node) or ""
            found = _DANGLING.match(text) or _dangling_of_kind(node, of_functions).match(text)
            if found:
                place = getattr(node, "lineno", 1)
                yield place, f"a docstring that begins with '{found[0]}': say what the thing is"


def _dangling_of_kind(node: ast.AST, of_functions: bool) -> re.Pattern[str]:
    if isinstance(node, ast.ClassDef):
        return _DANGLING_CLASS
    return _DANGLING_FUNCTION if of_functions and not isinstance(node, ast.Module) else _NOTHING


def dangling_comments(source: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(source.splitlines(), 1):
        if found := _DANGLING_COMMENT.match(line):
            yield number, f"a comment on an attribute that begins with '{found[1]}': say what the attribute is"


def _home_made_words() -> Iterator[str]:
    pages = {page: page.read_text() for page in [PROJECT / "README.md", *(PROJECT / "docs").rglob("*.md"), *_modules()]}
    changes = PROJECT / "CHANGELOG.md"
    pages[changes] = newest_changes(changes.read_text())
    return (f"{_place(page)}:{line}: {why}" for page, text in pages.items() for line, why in home_made_words(text))


def newest_changes(text: str) -> str:
    """The part of a changelog that is still being written: the older ones say what was said."""
    newest = re.search(r"^## .*?(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    assert newest is not None, "a changelog has parts"
    return text[: newest.end()]


def _dangling_texts() -> Iterator[str]:
    for module in _modules():
        text, sold = module.read_text(), module.is_relative_to(PROJECT / "src")
        comments = dangling_comments(text) if sold else ()
        # What a test says of its case may go on from its name.
        for line, why in (*dangling_docstrings(text, of_functions=sold), *comments):
            yield f"{_place(module)}:{line}: {why}"


def _modules() -> Iterator[Path]:
    """Sources, tests and benchmarks, but for what has these words as its subject."""
    for folder in ("src", "tests", "benchmarks"):
        found = (PROJECT / folder).rglob("*.py")
        yield from (one for one in found if ".cache" not in one.parts and not one.match("tests/kit/*words.py"))


def _place(path: Path) -> str:
    return str(path.relative_to(PROJECT))


if __name__ == "__main__":
    sys.exit(main())
