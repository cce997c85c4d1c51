"""What a SQL sink writes to: a table, or whatever a statement does."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.errors import ProgramError

#: What may hold a question mark that is no placeholder, and the placeholder itself.
_TOKENS = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | /\*.*?\*/ | (?P<tag>\$\w*\$).*?(?P=tag) | \?\? | (?P<mark>\?)""",
    re.DOTALL | re.VERBOSE,
)
_EXPLAINED = re.compile(r"\s*(insert|update|delete|merge|replace|with)\b", re.IGNORECASE)


class Target(ABC):
    """What rows are written to, a table or a statement. Picklable."""

    #: Columns of which no row may have NULL.
    key: tuple[str, ...] = ()

    @abstractmethod
    def check_columns(self, names: Sequence[str]) -> None:
        """ProgramError when rows with these columns cannot be written."""

    @abstractmethod
    def row_statement(self, names: Sequence[str], values: Sequence[str]) -> str:
        """What writes one row; ``values`` are expressions for its columns."""

    @property
    def explainable(self) -> bool:
        """Whether a database can say what is wrong with the statement without running it."""
        return True


@dataclass(frozen=True)
class TableTarget(Target):
    """Rows of a table. With a key, a row takes the place of the one that has its key."""

    table: str
    key: tuple[str, ...] = ()

    def check_columns(self, names: Sequence[str]) -> None:
        missing = [name for name in self.key if name not in names]
        if missing:
            raise ProgramError(
                f"Rows for {self.table} have the columns {', '.join(names)}, and the key has {', '.join(missing)}. "
                "Name columns of the stream's type as the key."
            )

    def row_statement(self, names: Sequence[str], values: Sequence[str]) -> str:
        return self.insert(names, f"VALUES ({', '.join(values)})")

    def insert(self, names: Sequence[str], rows: str) -> str:
        """A statement that writes what ``rows`` gives; no key may be in it twice."""
        statement = f"INSERT INTO {quoted(self.table)} ({', '.join(map(quoted_name, names))}) {rows}"
        if not self.key:
            return statement
        others = [f"{quoted_name(name)} = EXCLUDED.{quoted_name(name)}" for name in names if name not in self.key]
        change = f"UPDATE SET {', '.join(others)}" if others else "NOTHING"
        return f"{statement} ON CONFLICT ({', '.join(map(quoted_name, self.key))}) DO {change}"

    def __str__(self) -> str:
        return f"table {self.table}"


@dataclass(frozen=True)
class StatementTarget(Target):
    """A statement that runs for each row, with ``?`` for its columns in their order, as in JDBC. ``??`` is a question
    mark."""

    statement: str

    def check_columns(self, names: Sequence[str]) -> None:
        count = len(_parts(self.statement)) - 1
        if count != len(names):
            raise ProgramError(
                f"The statement {self.statement!r} has {count} placeholders, and rows have {len(names)} columns: "
                f"{', '.join(names)}. Write one ? for each column."
            )

    def row_statement(self, names: Sequence[str], values: Sequence[str]) -> str:
        first, *others = _parts(self.statement)
        return first + "".join(value + part for value, part in zip(values, others, strict=True))

    @property
    def explainable(self) -> bool:
        return _EXPLAINED.match(self.statement) is not None

    def __str__(self) -> str:
        return f"statement {self.statement!r}"


def quoted(table: str) -> str:
    """``schema.table``, taken as it is written, capital letters included."""
    return ".".join(map(quoted_name, table.split(".")))


def quoted_name(name: str) -> str:
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def _parts(statement: str) -> list[str]:
    """The text between placeholders."""
    parts, part, position = [], "", 0
    for token in _TOKENS.finditer(statement):
        part += statement[position : token.start()]
        position = token.end()
        if token["mark"]:
            parts.append(part)
            part = ""
        else:
            part += "?" if token[0] == "??" else token[0]
    return [*parts, part + statement[position:]]
