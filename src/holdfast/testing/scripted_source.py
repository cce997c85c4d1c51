"""A source for tests of whole jobs: rows in the order of a list, with a pause, a failure or the end between them."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from holdfast.connectors.reading import Budget
from holdfast.errors import ProgramError, RestoreError
from holdfast.runtime.batch import Batch
from holdfast.runtime.source import ReaderContext, ReadLimit, Source, SourceReader
from holdfast.types.typeinfo import TypeInformation, Types


@dataclass(frozen=True)
class _Abort:
    pass


@dataclass(frozen=True)
class _End:
    pass


@dataclass(frozen=True)
class _Pause:
    milliseconds: int = 0


class TestSource(Source):
    """Gives the items of a list, in one subtask. Its position is the index of the next item. Items that are no rows:

    ``ABORT``   the source fails here, the first time that it comes here; the job goes back to its last checkpoint
    ``PAUSE``   the epoch ends here: what is behind comes with the next one
    ``pause(milliseconds)``   nothing comes for so long, in as many epochs as there are meanwhile
    ``END``     the input ends, and with it the job; only the last item can be this one

    Without ``END`` the job goes on with no rows until it is stopped. That an ``ABORT`` has been is remembered by a file
    in the temporary directory of the driver's host, so that it needs executors on that host.
    """

    #: Not a class of tests, whatever pytest makes of its name.
    __test__ = False

    ABORT: ClassVar[Any] = _Abort()
    END: ClassVar[Any] = _End()
    PAUSE: ClassVar[Any] = _Pause()

    max_parallelism = 1

    def __init__(self, items: Iterable[Any], type_info: Any = None) -> None:
        self._items = list(items)
        self._type = type_info
        ends = [index for index, item in enumerate(self._items) if isinstance(item, _End)]
        if ends and ends != [len(self._items) - 1]:
            raise ProgramError(f"Items behind TestSource.END, which is item {ends[0]}, would never be read.")
        self.bounded = bool(ends)
        self._aborts = str(_directory_of_aborts() / uuid.uuid4().hex)

    @staticmethod
    def pause(milliseconds: int) -> Any:
        """An item: for so long nothing comes."""
        if milliseconds < 0:
            raise ProgramError(f"A pause cannot last {milliseconds} ms.")
        return _Pause(milliseconds)

    def output_type(self) -> Any:
        return self._type

    def position_type(self) -> TypeInformation:
        return Types.LONG()

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """Subtask 0 reads; any other has nothing to do."""
        if context.subtask != 0:
            return _ItemReader([_End()], 0, self._aborts)
        position = max(context.restored or [0])
        if position > len(self._items):
            raise RestoreError(
                f"The restored TestSource was at item {position}, and there are only {len(self._items)}. Start with "
                "the same items, or with more that begin with the same."
            )
        return _ItemReader(self._items, position, self._aborts)


class _ItemReader(SourceReader):
    def __init__(self, items: list[Any], position: int, aborts: str) -> None:
        self._items = items
        self._position = position
        self._aborts = aborts
        self._resume_at: float | None = None

    def read(self, limit: ReadLimit) -> Iterator[Batch]:
        budget = Budget(limit)
        while not self.ended and self._position < len(self._items):
            item = self._items[self._position]
            if isinstance(item, _Pause):
                self._pause(item)
                return
            if isinstance(item, _Abort):
                self._abort_once()
            elif isinstance(item, _End):
                self.ended = True
                return
            else:
                rows = self._rows(budget.next_chunk())
                if not rows:
                    return
                budget.spend(len(rows))
                yield Batch(rows)
                continue
            self._position += 1

    def positions(self) -> list[int]:
        return [self._position]

    def _rows(self, limit: int) -> list[Any]:
        """The next rows, up to an item that is none."""
        first = self._position
        while self._position < min(first + limit, len(self._items)) and not isinstance(
            self._items[self._position], (_Abort, _End, _Pause)
        ):
            self._position += 1
        return self._items[first : self._position]

    def _pause(self, item: _Pause) -> None:
        """Stay at the item until its time is over. A job that goes back to a checkpoint pauses again."""
        now = time.time()
        if self._resume_at is None:
            self._resume_at = now + item.milliseconds / 1000
        if now >= self._resume_at:
            self._resume_at = None
            self._position += 1

    def _abort_once(self) -> None:
        marks = Path(self._aborts)
        marks.mkdir(parents=True, exist_ok=True)
        try:
            os.close(os.open(marks / str(self._position), os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        raise RuntimeError(f"TestSource.ABORT, which is item {self._position}: the source fails here once")


@cache
def _directory_of_aborts() -> Path:
    """For as long as the driver's process lives."""
    path = Path(tempfile.mkdtemp(prefix="holdfast-test-source-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path
