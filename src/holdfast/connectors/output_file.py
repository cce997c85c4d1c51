"""A file that a task writes, with its size and checksum."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, BinaryIO

import xxhash

from holdfast.storage.filesystem import Storage


class OutputFile:
    """A file that is durable under its path when its block ends without error, and nowhere otherwise."""

    def __init__(self, storage: Storage, path: str) -> None:
        self.path = path
        self._output: AbstractContextManager[BinaryIO] = storage.open_output(path)
        self.stream = _MeasuredStream(self._output.__enter__())

    def __enter__(self) -> OutputFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.stream.detach()
        self._output.__exit__(kind, error, trace)

    def written(self) -> tuple[str, int, str]:
        """Path, size and checksum."""
        return self.path, self.stream.size, self.stream.checksum()

    def discard(self) -> None:
        """End the block with an exception, which is how the storage learns that nothing is to be published."""
        reason = _Discarded()
        self.__exit__(type(reason), reason, None)


class _Discarded(Exception):
    """The way out of a block whose file is not wanted; no error."""


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
