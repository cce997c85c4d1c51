"""A row as a line of text, by its declared type. Rows of no declared type are shown as Python shows them."""

from __future__ import annotations

from functools import cache

from holdfast.types.information import RowTypeInfo, TypeInformation
from holdfast.types.settings import TextForm
from holdfast.types.text_forms import Show, or_null, python_row


@cache
def line_of(type_info: TypeInformation, form: TextForm) -> Show:
    """The text of a row in a file."""
    if form is TextForm.PYTHON or not type_info.declared:
        return str
    return or_null(type_info.text_form())


@cache
def printed_line_of(type_info: TypeInformation, form: TextForm) -> Show:
    """The text of a row on the terminal: as PyFlink's ``print()`` has it, which leaves the fields of a ``Row`` to
    Python.
    """
    if form is TextForm.FLINK and isinstance(type_info, RowTypeInfo):
        return python_row
    return line_of(type_info, form)
