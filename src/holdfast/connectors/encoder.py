"""How a row becomes a line of text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Encoder:
    """PyFlink's encoder of row formats. ``encode`` gives the text of one line, without its end; it must be
    picklable."""

    def __init__(self, encode: Callable[[Any], str], charset_name: str = "UTF-8") -> None:
        self.encode = encode
        self.charset_name = charset_name

    @staticmethod
    def simple_string_encoder(charset_name: str = "UTF-8") -> Encoder:
        """``str(row)`` per line."""
        return Encoder(str, charset_name)
