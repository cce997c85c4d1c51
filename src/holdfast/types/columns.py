"""Values of a declared type as an Arrow column, and back, for whoever works on whole columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from holdfast.errors import ProgramError, RowTypeError
from holdfast.types.arrow_read import column_reader
from holdfast.types.arrow_write import column_writer
from holdfast.types.typeinfo import PickledBytesTypeInfo, TypeInformation


class Column:
    """Reads and writes columns of one type; ``what`` says in errors what they hold."""

    def __init__(self, type_info: TypeInformation, what: str) -> None:
        if isinstance(type_info, PickledBytesTypeInfo):
            raise ProgramError(f"The type of {what} is not declared, so that it has no Arrow type; declare it.")
        self._type_info = type_info
        self._what = what
        self.arrow_type: pa.DataType = type_info.arrow_type()
        self._read = column_reader(type_info)
        self._write = column_writer(type_info)

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
