"""Values of a declared type as an Arrow column, and back, for whoever works on whole columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from holdfast.errors import ProgramError, RowTypeError
from holdfast.types.contract import TypeInformation


class Column:
    """Reads and writes columns of one type; ``what`` says in errors what they hold."""

    def __init__(self, type_info: TypeInformation, what: str) -> None:
        if not type_info.declared:
            raise ProgramError(f"The type of {what} is not declared, so that it has no Arrow type; declare it.")
        self._type_info = type_info
        self._what = what
        self.arrow_type: pa.DataType = type_info.arrow_type()
        self._read = type_info.column_reader()
        self._write = type_info.column_writer()

    def read(self, column: pa.Array | pa.ChunkedArray) -> list[Any]:
        """The values; None where the column is null. A column of a close type is cast."""
        return self._read(self.conform(column))

    def write(self, values: Sequence[Any]) -> pa.Array:
        """The column of values that are of the type."""
        return self._write(values)

    def conform(self, column: pa.Array | pa.ChunkedArray) -> pa.Array:
        """This column in the Arrow type of the type."""
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        if column.type == self.arrow_type:
            return column
        try:
            return column.cast(self.arrow_type)
        except pa.ArrowException as error:
            raise RowTypeError(
                f"A column for {self._what} is {column.type}; expected {self.arrow_type}, for "
                f"{self._type_info.describe()}: {error}"
            ) from error
