"""How a row becomes a line of text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.connectors.row_text import line_of
from holdfast.types.information import TypeInformation
from holdfast.types.settings import TextForm


class Encoder:
    """PyFlink's encoder of row formats. ``encode`` gives the text of one line, without its end; it must be
    picklable."""

    def __init__(self, encode: Callable[[Any], str], charset_name: str = "UTF-8") -> None:
        self.encode = encode
        self.charset_name = charset_name
        self._by_type = False

    @staticmethod
    def simple_string_encoder(charset_name: str = "UTF-8") -> Encoder:
        """A row per line, as Flink writes it by its declared type; by ``str()`` where none was declared.
        ``Encoder(str)`` always does the latter.
        """
        encoder = Encoder(str, charset_name)
        encoder._by_type = True
        return encoder

    def for_rows(self, type_info: TypeInformation, form: TextForm) -> Callable[[Any], str]:
        """Gives the text of rows of a type."""
        return line_of(type_info, form) if self._by_type else self.encode
