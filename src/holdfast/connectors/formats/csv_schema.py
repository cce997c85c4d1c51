"""The columns of CSV files and how they are written, with PyFlink's builder."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from holdfast.connectors.csv_dialect import CsvDialect
from holdfast.errors import ProgramError
from holdfast.types.information import RowTypeInfo, TypeInformation
from holdfast.types.resolve import resolve
from holdfast.types.typeinfo import Types


@dataclass(frozen=True)
class CsvColumn:
    """A column of a file."""

    name: str
    type_info: TypeInformation
    #: Between the elements of an array; empty for the schema's.
    separator: str = ""


@dataclass(frozen=True)
class CsvSchema:
    """What a file of CSV has. Made by ``builder``."""

    columns: tuple[CsvColumn, ...]
    dialect: CsvDialect

    @staticmethod
    def builder() -> CsvSchemaBuilder:
        return CsvSchemaBuilder()

    def size(self) -> int:
        return len(self.columns)

    def __len__(self) -> int:
        return self.size()

    def row_type(self) -> RowTypeInfo:
        """The type of its records."""
        return Types.ROW_NAMED([one.name for one in self.columns], [one.type_info for one in self.columns])

    def array_separators(self) -> dict[str, str]:
        """What is between elements, by the names of the columns that hold arrays."""
        return {one.name: one.separator or self.dialect.array_separator for one in self.columns if one.type_info.parts}

    def __str__(self) -> str:
        return f"CsvSchema({self.row_type()}, {self.dialect})"

    def __repr__(self) -> str:
        return str(self)


class CsvSchemaBuilder:
    """Collects columns and characters. Each method gives the builder back."""

    def __init__(self) -> None:
        self._columns: list[CsvColumn] = []
        self._dialect = CsvDialect()

    def build(self) -> CsvSchema:
        if not self._columns:
            raise ProgramError("A CsvSchema needs columns: add_string_column(name), add_number_column(name, type), ...")
        return CsvSchema(tuple(self._columns), self._dialect)

    def add_array_column(self, name: str, separator: str = ";", element_type: Any = None) -> CsvSchemaBuilder:
        """A field with a list of values in it, texts unless a type is given: ``Types.*``, a class or DDL."""
        elements = Types.STRING() if element_type is None else resolve(element_type)
        return self._add(CsvColumn(name, Types.LIST(elements), separator))

    def add_boolean_column(self, name: str) -> CsvSchemaBuilder:
        return self._add(CsvColumn(name, Types.BOOLEAN()))

    def add_number_column(self, name: str, number_type: Any = None) -> CsvSchemaBuilder:
        """A ``Types.LONG()`` unless a type is given: ``Types.*``, a class or DDL."""
        return self._add(CsvColumn(name, Types.LONG() if number_type is None else resolve(number_type)))

    def add_string_column(self, name: str) -> CsvSchemaBuilder:
        return self._add(CsvColumn(name, Types.STRING()))

    def add_columns_from(self, schema: CsvSchema) -> CsvSchemaBuilder:
        """Columns of names that are there already are left out."""
        for column in schema.columns:
            if column.name not in {mine.name for mine in self._columns}:
                self._add(column)
        return self

    def clear_columns(self) -> CsvSchemaBuilder:
        self._columns.clear()
        return self

    def set_allow_comments(self, allow: bool = True) -> CsvSchemaBuilder:
        """Lines that begin with ``#`` are no records."""
        return self._with(comments=allow)

    def set_any_property_name(self, name: str) -> CsvSchemaBuilder:
        raise ProgramError(
            f"set_any_property_name({name!r}) is not available: a row has the columns of the schema and no others. Add "
            "the columns that you need."
        )

    def disable_array_element_separator(self) -> CsvSchemaBuilder:
        """An array is one element, and elements are written without anything between them."""
        return self.set_array_element_separator("")

    def remove_array_element_separator(self, index: int) -> CsvSchemaBuilder:
        """The column of this number has the schema's separator."""
        if not 0 <= index < len(self._columns):
            raise ProgramError(f"The CSV schema has {len(self._columns)} columns so far, and none of number {index}.")
        self._columns[index] = replace(self._columns[index], separator="")
        return self

    def set_array_element_separator(self, separator: str) -> CsvSchemaBuilder:
        """For columns that have none of their own."""
        return self._with(array_separator=separator)

    def set_column_separator(self, char: str) -> CsvSchemaBuilder:
        return self._with(separator=_one(char, "Column separator"))

    def disable_escape_char(self) -> CsvSchemaBuilder:
        return self._with(escape=None)

    def set_escape_char(self, char: str) -> CsvSchemaBuilder:
        return self._with(escape=_one(char, "Escape char"))

    def set_line_separator(self, separator: str) -> CsvSchemaBuilder:
        """For writing; what is read may have any line end."""
        return self._with(line_end=separator)

    def set_null_value(self, null_value: str) -> CsvSchemaBuilder:
        return self._with(null=null_value)

    def disable_quote_char(self) -> CsvSchemaBuilder:
        return self._with(quote=None)

    def set_quote_char(self, char: str) -> CsvSchemaBuilder:
        return self._with(quote=_one(char, "Quote char"))

    def set_skip_first_data_row(self, skip: bool = True) -> CsvSchemaBuilder:
        return self._with(skip_first=skip)

    def set_strict_headers(self, strict: bool = True) -> CsvSchemaBuilder:
        return self._with(strict_header=strict)

    def set_use_header(self, use: bool = True) -> CsvSchemaBuilder:
        """The first line of a file names its columns. Files that are written get one."""
        return self._with(header=use)

    def size(self) -> int:
        return len(self._columns)

    def __len__(self) -> int:
        return self.size()

    def _add(self, column: CsvColumn) -> CsvSchemaBuilder:
        self._columns.append(column)
        return self

    def _with(self, **parts: Any) -> CsvSchemaBuilder:
        self._dialect = replace(self._dialect, **parts)
        return self


def _one(char: str, what: str) -> str:
    if len(char) != 1:
        raise ValueError(f"{what} must be a single char, got {char}")
    return char
