"""Spark's DDL text for types: ``bigint``, ``a INT, b ARRAY<STRING>``, ``struct<a:int>``, ``decimal(10,2)``."""

from __future__ import annotations

import re

from holdfast.errors import ProgramError
from holdfast.types.registry import ddl_word, known_ddl
from holdfast.types.typeinfo import TypeInformation, Types

_TOKENS = re.compile(r"\s*(?:(?P<word>\w+)|`(?P<quoted>(?:[^`]|``)+)`|(?P<text>'(?:[^'\\]|\\.)*')|(?P<mark>[<>(),:]))")

_NESTED = ("array", "map", "struct")


def parse_ddl(text: str) -> TypeInformation:
    """The type that ``text`` names; a list of columns is a ROW_NAMED. Raises ProgramError that points at the place."""
    parser = _Parser(text)
    parsed = parser.columns(end=None) if parser.starts_with_column() else parser.type()
    parser.expect_end()
    return parsed


class _Parser:
    """Recursive descent over the tokens of one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[tuple[str, str, int]] = []
        self._next = 0
        position = 0
        stripped = text.rstrip()
        while position < len(stripped):
            match = _TOKENS.match(stripped, position)
            if match is None:
                raise self._error(f"'{stripped[position:].strip()[0]}' is not expected", position)
            kind = str(match.lastgroup)
            self._tokens.append((kind, match.group(kind), match.start(kind)))
            position = match.end()
        if not self._tokens:
            raise self._error("the text is empty", 0)

    def starts_with_column(self) -> bool:
        """A column is a name followed by a type or a colon; a type is a word followed by nothing or a bracket."""
        first, second = self._peek(0), self._peek(1)
        return first[0] == "quoted" or (first[0] == "word" and (second[0] in ("word", "quoted") or second[1] == ":"))

    def columns(self, end: str | None) -> TypeInformation:
        names: list[str] = []
        types: list[TypeInformation] = []
        while True:
            names.append(self._name())
            self._accept(":")
            types.append(self.type())
            self._column_options()
            if not self._accept(","):
                break
        if end is not None:
            self._expect(end)
        return Types.ROW_NAMED(names, types)

    def type(self) -> TypeInformation:
        kind, word, position = self._take()
        name = word.lower()
        known = ddl_word(name) if kind == "word" else None
        if known is not None:
            sizes = self._sizes(word, position, known.at_least, known.at_most) if known.sized else []
            return known.make(*sizes)
        if kind == "word" and name in _NESTED:
            self._expect("<")
            return self._nested(name)
        seen = "the end of the text" if kind == "end" else f"'{word}'"
        raise self._error(f"expected a type, found {seen}; types are {', '.join([*known_ddl(), *_NESTED])}", position)

    def expect_end(self) -> None:
        kind, word, position = self._peek(0)
        if kind != "end":
            raise self._error(f"'{word}' is not expected after the type", position)

    def _nested(self, name: str) -> TypeInformation:
        if name == "struct":
            return self.columns(end=">")
        first = self.type()
        if name == "array":
            self._expect(">")
            return Types.LIST(first)
        self._expect(",")
        second = self.type()
        self._expect(">")
        return Types.MAP(first, second)

    def _sizes(self, word: str, position: int, at_least: int, at_most: int) -> list[int]:
        sizes: list[int] = []
        if self._accept("("):
            while True:
                _, number, place = self._take()
                if not number.isdigit():
                    raise self._error(f"expected a number, found '{number}'", place)
                sizes.append(int(number))
                if not self._accept(","):
                    break
            self._expect(")")
        if not at_least <= len(sizes) <= at_most:
            raise self._error(f"{word} takes {at_least} to {at_most} numbers in brackets, found {len(sizes)}", position)
        return sizes

    def _column_options(self) -> None:
        """NOT NULL and COMMENT say nothing about how values are stored."""
        while self._peek(0)[0] == "word":
            word = self._take()[1].upper()
            kind, following, position = self._take()
            if (word, following.upper()) != ("NOT", "NULL") and (word, kind) != ("COMMENT", "text"):
                raise self._error(f"'{word}' is not expected after a column's type", position)

    def _name(self) -> str:
        kind, word, position = self._take()
        if kind not in ("word", "quoted"):
            raise self._error(f"expected a column name, found '{word}'", position)
        return word.replace("``", "`") if kind == "quoted" else word

    def _peek(self, ahead: int) -> tuple[str, str, int]:
        index = self._next + ahead
        return self._tokens[index] if index < len(self._tokens) else ("end", "", len(self._text))

    def _take(self) -> tuple[str, str, int]:
        token = self._peek(0)
        self._next += 1
        return token

    def _accept(self, mark: str) -> bool:
        if self._peek(0)[:2] == ("mark", mark):
            self._next += 1
            return True
        return False

    def _expect(self, mark: str) -> None:
        if not self._accept(mark):
            kind, word, position = self._peek(0)
            seen = "the end of the text" if kind == "end" else f"'{word}'"
            raise self._error(f"expected '{mark}', found {seen}", position)

    def _error(self, problem: str, position: int) -> ProgramError:
        return ProgramError(f"Cannot read the type '{self._text}' at character {position + 1}: {problem}")
