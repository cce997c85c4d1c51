"""Lines of text, one string each."""

from __future__ import annotations

import codecs

import pyarrow as pa

from holdfast.connectors.files.content import Content
from holdfast.connectors.files.lines import LineParser, LinesFormat, after_byte_order_mark
from holdfast.errors import ConfigurationError
from holdfast.types.arrow import schema_of
from holdfast.types.typeinfo import Types


class TextLineFormat(LinesFormat):
    """Every line without its line end, also empty ones. The charset must write a line end as one byte, as UTF-8
    does."""

    blank_lines_count = True

    def __init__(self, charset: str = "UTF-8") -> None:
        try:
            self._charset = codecs.lookup(charset).name
        except LookupError:
            raise ConfigurationError(
                f"The charset {charset!r} is unknown; one that Python knows is expected, as UTF-8."
            ) from None
        if "a\n".encode(self._charset) != b"a\n":
            raise ConfigurationError(
                f"The charset {charset!r} does not write a line end as one byte, so lines cannot be found. "
                "Use UTF-8, ASCII or one of the ISO-8859 family."
            )
        self.type_info = Types.STRING()

    def begin(self, content: Content) -> tuple[int, LineParser]:
        return after_byte_order_mark(content), self._parse

    def _parse(self, lines: bytes) -> pa.RecordBatch:
        text = lines.decode(self._charset).removesuffix("\n")
        values = [line.removesuffix("\r") for line in text.split("\n")]
        return pa.RecordBatch.from_arrays([pa.array(values, pa.string())], schema=schema_of(self.type_info))
