"""What is known of a failure when it is raised: which error of the program it was, and where in the program.

Made in the process that raised it, since tracebacks do not travel, and a plain value from then on. The frames of a
program are told apart by their files: not Holdfast's, not PySpark's, and where that leaves any, neither Python's own
nor those of installed packages.
"""

from __future__ import annotations

import sys
import sysconfig
import traceback
from collections.abc import Iterator
from functools import cache
from os.path import basename, dirname, sep
from types import ModuleType, TracebackType

import msgspec

from holdfast import errors
from holdfast.errors import (
    CallTimeoutError,
    CheckpointError,
    ConfigurationError,
    EpochError,
    FunctionError,
    HoldfastError,
    MissingExtraError,
    NullKeyError,
    RowTypeError,
    SourceError,
    SourceUnreachableError,
    StateAccessError,
    StateDescriptorError,
    StateError,
    StateTypeError,
    StorageError,
    TransactionError,
    TransactionRefusedError,
    UnfitExecutorError,
    UnfitFileError,
)

_HOLDFAST = dirname(errors.__file__) + sep
_internal_packages: set[ModuleType] = set()
#: What rows, files, messages, state and transactions are checked by. They are as wrong in the next attempt.
_LASTING = (
    CallTimeoutError,
    ConfigurationError,
    MissingExtraError,
    NullKeyError,
    RowTypeError,
    SourceError,
    StateAccessError,
    StateDescriptorError,
    StateTypeError,
    TransactionRefusedError,
    UnfitFileError,
)
#: The cluster, a service, the network, a disk or memory: what fails may be back in the next attempt.
_PASSING = (
    CheckpointError,
    EpochError,
    StateError,
    StorageError,
    TransactionError,
    UnfitExecutorError,
    OSError,
    MemoryError,
    KeyboardInterrupt,
)
#: Sources of compiled libraries. Their frames name them without a folder.
_CYTHON = (".pyx", ".pxi", ".pxd")
_LONGEST_MESSAGE = 2_000


class Place(msgspec.Struct, frozen=True):
    """A line of the program."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}, in {self.function}"

    @property
    def stable(self) -> str:
        """What it is on every executor: Spark puts the files of a program into a folder of each."""
        return f"{basename(self.file)}:{self.line}:{self.function}"


class FailureReport(msgspec.Struct, frozen=True):
    """One failure, as it was raised."""

    #: The type and the message of what the program raised, or of an error of Holdfast's own.
    kind: str
    message: str
    #: The id of the operator, or its description where only that is known.
    operator: str = ""
    #: The innermost line of the program that led to it; None where the program had no part in it.
    place: Place | None = None
    #: As Python prints it, with the frames of the program and of what it called alone; empty without any.
    program_trace: str = ""
    full_trace: str = ""
    #: It is of the program or of its rows, and not known to pass by itself: it counts as one that may come again.
    of_program: bool = False

    def trace(self, full: bool) -> str:
        """What to show of where it happened: the frames of the program, and on request behind them all there are."""
        shown = (self.program_trace, self.full_trace) if full else (self.program_trace,)
        return "\n".join(trace for trace in shown if trace)

    @property
    def error(self) -> str:
        """The error in one line."""
        return f"{self.kind}: {self.message}".partition("\n")[0].removesuffix(": ")


class TaskTraceback(Exception):
    """The trace of an error that was raised in another process. It is the cause of the error that is raised again."""

    def __init__(self, trace: str) -> None:
        super().__init__(f"\n{trace.rstrip()}")


def report_of(error: HoldfastError) -> FailureReport:
    """What is known of an error: as it came with it from another process, else as it is found now."""
    known: FailureReport | None = error.__dict__.get("report")
    if known is not None:
        return known
    return report_of_raised(error, error.__cause__ if isinstance(error, FunctionError) and error.__cause__ else error)


def with_report(error: HoldfastError, report: FailureReport) -> HoldfastError:
    """An error that was raised elsewhere, and what was found there."""
    error.__dict__["report"] = report
    return error


def show_trace(error: HoldfastError, full: bool) -> None:
    """Make of an error that came from another process one that prints what there is to see, and nothing of how it came
    here. One of this process is left as it is, for debuggers.
    """
    known: FailureReport | None = error.__dict__.get("report")
    if known is not None:
        trace = known.trace(full)
        error.__cause__ = TaskTraceback(trace) if trace else None
        error.__traceback__ = None


def report_of_raised(error: HoldfastError, raised: BaseException) -> FailureReport:
    """What is found of an error here, and of what it was raised for."""
    frames = list(traceback.walk_tb(raised.__traceback__))
    files = [frame.f_code.co_filename for frame, _ in frames]
    inner = _innermost(files, isinstance(raised, HoldfastError))
    place = None if inner is None else Place(files[inner], frames[inner][1], frames[inner][0].f_code.co_name)
    return FailureReport(
        kind=type(raised).__qualname__,
        message=_message_of(raised),
        operator=error.place.get("operator_id", error.place.get("operator", "")),
        place=place,
        program_trace="" if place is None else _program_trace(raised),
        full_trace="".join(traceback.format_exception(error)),
        of_program=_is_of_program(raised, place),
    )


def _message_of(raised: BaseException) -> str:
    """What was said; of an error of ours without the row and the key that it was said of."""
    said = Exception.__str__(raised) if isinstance(raised, HoldfastError) else str(raised)
    return said[:_LONGEST_MESSAGE]


def _is_of_program(raised: BaseException, place: Place | None) -> bool:
    """Whatever a line of the program raises is its own, also where that says that a service is away: who calls services
    knows how long to wait for them.
    """
    if place is not None and is_own(place.file) and not isinstance(raised, HoldfastError):
        return True
    for each in _chain(raised):
        if isinstance(each, _LASTING):
            return not isinstance(each, SourceUnreachableError)
        if isinstance(each, _PASSING):
            return False
    return True


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error and what it was raised from."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _innermost(files: list[str], by_holdfast: bool) -> int | None:
    """Which frame is the innermost of the program, or of what it called where the program cannot be told from that.
    What Holdfast raises without the program has libraries of its own around it.
    """
    outside = [number for number, file in enumerate(files) if not is_internal(file)]
    own = [number for number in outside if is_own(files[number])]
    return next(reversed(own if by_holdfast else own or outside), None)


def _program_trace(raised: BaseException) -> str:
    told = traceback.TracebackException(type(raised), raised, _without_outer(raised.__traceback__))
    _drop_internal_frames(told)
    return "".join(told.format())


def _without_outer(trace: TracebackType | None) -> TracebackType | None:
    """From the first frame of the program on: what is around it may be Python's own."""
    start = trace
    while start is not None and not is_own(start.tb_frame.f_code.co_filename):
        start = start.tb_next
    return start or trace


def _drop_internal_frames(told: traceback.TracebackException | None) -> None:
    while told is not None:
        kept = [frame for frame in told.stack if not is_internal(frame.filename)]
        told.stack = traceback.StackSummary.from_list(kept)
        if told.__cause__ is not None and told.__context__ is not told.__cause__:
            _drop_internal_frames(told.__context__)
        told = told.__cause__ or told.__context__


def is_internal(file: str) -> bool:
    return file.startswith(_internal_folders()) or file.startswith("<frozen")


def is_own(file: str) -> bool:
    return not is_internal(file) and not file.startswith(_library_folders()) and not file.endswith(_CYTHON)


def count_as_internal(package: ModuleType) -> None:
    """Frames of a package are not shown, as those of Holdfast are not."""
    _internal_packages.add(package)


def _internal_folders() -> tuple[str, ...]:
    packages = (*_internal_packages, sys.modules.get("pyspark"))
    files = [package.__file__ for package in packages if package is not None and package.__file__]
    return (_HOLDFAST, *(dirname(file) + sep for file in files))


@cache
def _library_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    return tuple(sorted({paths[name] + sep for name in ("stdlib", "platstdlib", "purelib", "platlib")}))
