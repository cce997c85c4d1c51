"""The files that one task writes in one epoch."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, BinaryIO, cast

import xxhash

from holdfast.connectors.file_sink.formats import RowFileWriter, SinkFormat
from holdfast.connectors.file_sink.naming import FileHandle, StagedFile, committed_name, staging_path
from holdfast.connectors.file_sink.options import FileSinkOptions
from holdfast.runtime.batch import Batch
from holdfast.runtime.sink import TransactionName
from holdfast.storage.filesystem import Storage
from holdfast.types.information import TypeInformation


class FileTransaction:
    """Opens a file at the first row, another one when the rolling policy says so."""

    def __init__(
        self,
        name: TransactionName,
        storage: Storage,
        format_and_type: tuple[SinkFormat, TypeInformation],
        options: FileSinkOptions,
        bucket: str,
    ) -> None:
        self._name = name
        self._storage = storage
        self._format, self._type = format_and_type
        self._options = options
        self._bucket = bucket
        self._finished: list[StagedFile] = []
        self._part: _Part | None = None

    def write(self, batch: Batch) -> None:
        if not len(batch):
            return
        if self._part is None:
            self._part = self._next_part()
        self._part.writer.write(batch)
        size = self._options.rolling.part_size
        if size is not None and self._part.stream.size >= size:
            self._finish_part()

    def finish(self) -> FileHandle | None:
        """Make everything durable; None when no row was written."""
        self._finish_part()
        return FileHandle(self._storage.uri, self._name, self._finished) if self._finished else None

    def discard(self) -> None:
        part, self._part = self._part, None
        try:
            if part is not None:
                part.discard()
        finally:
            for file in self._finished:
                self._storage.delete(file.staging)

    def _next_part(self) -> _Part:
        number = len(self._finished)
        config = self._options.file_config
        suffix = config.part_suffix or self._format.extension
        final = committed_name(self._name, number, config.part_prefix, suffix)
        return _Part(
            self._storage,
            staging_path(self._name, number, suffix),
            f"{self._bucket}/{final}" if self._bucket else final,
            (self._format, self._type),
        )

    def _finish_part(self) -> None:
        part, self._part = self._part, None
        if part is not None:
            self._finished.append(part.finish())


class _Part:
    """One file in staging, open for writing."""

    def __init__(
        self, storage: Storage, staging: str, final: str, format_and_type: tuple[SinkFormat, TypeInformation]
    ) -> None:
        self._staging = staging
        self._final = final
        self._output: AbstractContextManager[BinaryIO] = storage.open_output(staging)
        self.stream = _MeasuredStream(self._output.__enter__())
        try:
            file_format, type_info = format_and_type
            self.writer: RowFileWriter = file_format.open(cast("BinaryIO", self.stream), type_info)
        except BaseException:
            self.discard()
            raise

    def finish(self) -> StagedFile:
        try:
            self.writer.finish()
        except BaseException:
            self.discard()
            raise
        self._output.__exit__(None, None, None)
        return StagedFile(self._staging, self._final, self.stream.size, self.stream.checksum())

    def discard(self) -> None:
        """End the storage's block with an exception, which is how it learns that nothing is to be published."""
        self.stream.detach()
        reason = _Discarded()
        self._output.__exit__(type(reason), reason, None)


class _Discarded(Exception):
    """Not an error: the way out of a block whose file is not wanted."""


class _MeasuredStream:
    """Counts and sums up what goes through it. The owner of the stream beneath closes that one."""

    closed = False

    def __init__(self, stream: BinaryIO) -> None:
        self._stream: BinaryIO | None = stream
        self._digest = xxhash.xxh3_128()
        self.size = 0

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        if self._stream is not None:
            self._stream.write(view)
        self._digest.update(view)
        self.size += len(view)
        return len(view)

    def tell(self) -> int:
        return self.size

    def detach(self) -> None:
        """Swallow what comes from now on: a writer that is thrown away still wants to write its end."""
        self._stream = None

    def flush(self) -> None:
        if self._stream is not None:
            self._stream.flush()

    def close(self) -> None:
        self.flush()

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def checksum(self) -> str:
        return self._digest.hexdigest()
