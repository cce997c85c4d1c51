"""Rows in the form of their declared type, for followers that no exchange gave it to.

An exchange writes the columns of the declared type and reads them again: a tuple declared as a row arrives as a row,
and what is not of the type is refused. Followers in the same task get the same. A batch whose rows are in that form
already is passed on as it is, after a look at it as a whole; any other is written and read, by what the exchange uses.
"""

from __future__ import annotations

from holdfast.errors import RowTypeError
from holdfast.runtime.batch import Batch
from holdfast.types.arrow import exchange_writer, row_check, row_reader
from holdfast.types.typeinfo import TypeInformation


class DeclaredRows:
    """The declared type of one output of an operator; ``where`` says in errors who gives the rows."""

    def __init__(self, type_info: TypeInformation, where: str) -> None:
        self._in_form = row_check(type_info)
        self._write = exchange_writer(type_info)
        self._read = row_reader(type_info)
        self._where = where

    def of(self, batch: Batch) -> Batch:
        if batch.arrow is not None or self._in_form(batch.values):
            return batch
        try:
            columns = self._write(batch.values)
        except RowTypeError as error:
            raise error.at(operator=self._where) from error.__cause__
        declared = Batch(None, batch.times, batch.marks, None, columns, self._read)
        declared.origin = batch.origin
        return declared
