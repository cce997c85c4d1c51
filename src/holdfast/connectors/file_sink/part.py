"""One file in staging, open for writing."""

from __future__ import annotations

from typing import BinaryIO, cast

from holdfast.connectors.file_sink.formats import RowFileWriter, SinkFormat
from holdfast.connectors.output_file import OutputFile
from holdfast.runtime.batch import Batch
from holdfast.types.information import TypeInformation


class Part:
    """Rows of one bucket on their way into a file."""

    def __init__(self, file: OutputFile, sink_format: SinkFormat, type_info: TypeInformation, now_ms: int) -> None:
        self._file = file
        self.first_ms = self.last_ms = now_ms
        try:
            self._writer: RowFileWriter = sink_format.open(cast("BinaryIO", file.stream), type_info)
        except BaseException:
            file.discard()
            raise

    @property
    def size(self) -> int:
        """What has left the writer's buffers."""
        return self._file.stream.size

    def write(self, batch: Batch, now_ms: int) -> None:
        self._writer.write(batch)
        self.last_ms = now_ms

    def finish(self) -> tuple[str, int, str]:
        with self._file:
            self._writer.finish()
        return self._file.written()

    def discard(self) -> None:
        self._file.discard()
