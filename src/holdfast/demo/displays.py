"""How progress is shown: tables that change in place on a terminal, lines of text anywhere else."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, TextIO

from holdfast.demo.progress import CheckpointLine, Progress
from holdfast.errors import MissingExtraError

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

_SHOWN_EPOCHS = 8
_SHOWN_CHECKPOINTS = 8
_SHOWN_NOTES = 7


class Display(ABC):
    """Used as a context manager; ``show`` is called several times a second."""

    @abstractmethod
    def show(self, progress: Progress) -> None: ...

    def __enter__(self) -> Display:
        return self

    def __exit__(self, *_: object) -> None:
        return None


class PlainDisplay(Display):
    """One line for each new epoch, finished checkpoint and note."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._epochs = 0
        self._notes = 0
        self._checkpoint = 0

    def show(self, progress: Progress) -> None:
        for note in progress.notes[self._notes :]:
            self._line(note.seconds, note.text)
        for epoch in progress.epochs[self._epochs :]:
            rate = f"{epoch.rows_per_second:,.0f} rows/s"
            self._line(progress.seconds, f"epoch {epoch.number} (attempt {epoch.attempt}): {epoch.rows:,} rows, {rate}")
        for checkpoint in progress.checkpoints:
            if checkpoint.number > self._checkpoint and checkpoint.duration_ms is not None:
                self._checkpoint = checkpoint.number
                self._line(progress.seconds, f"checkpoint {checkpoint.number}: {_checkpoint_text(checkpoint)}")
        self._epochs, self._notes = len(progress.epochs), len(progress.notes)

    def _line(self, seconds: float, text: str) -> None:
        print(f"{seconds:6.1f} s  {text}", file=self._stream, flush=True)


class LiveDisplay(Display):
    """Tables of the last epochs and checkpoints, redrawn in place."""

    def __init__(self) -> None:
        try:
            from rich.live import Live
        except ImportError as cause:
            raise MissingExtraError("rich", "demo", "The live display of the demo") from cause
        self._live = Live(refresh_per_second=8)

    def __enter__(self) -> LiveDisplay:
        self._live.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.__exit__(None, None, None)

    def show(self, progress: Progress) -> None:
        self._live.update(_render(progress))


def display_for(stream: TextIO, plain: bool) -> Display:
    """Tables when ``stream`` is a terminal and nothing speaks against it."""
    if plain or not stream.isatty():
        return PlainDisplay(stream)
    try:
        return LiveDisplay()
    except MissingExtraError as hint:
        print(hint, file=sys.stderr)
        return PlainDisplay(stream)


def _render(progress: Progress) -> RenderableType:
    from rich.columns import Columns
    from rich.console import Group
    from rich.text import Text

    colour = {"RUNNING": "green", "FINISHED": "green", "RESTARTING": "yellow", "FAILING": "red", "FAILED": "red"}
    head = Text.assemble(
        (f" {progress.status} ", f"bold reverse {colour.get(progress.status, 'cyan')}"),
        f" {progress.seconds:5.1f} s  attempt {progress.attempt}, restarts {progress.restarts}  "
        f"{progress.rows:,} of {progress.events_written:,} events, {progress.rows_per_second:,.0f}/s",
    )
    notes = [Text(f"{note.seconds:6.1f} s  {note.text}") for note in progress.notes[-_SHOWN_NOTES:]]
    return Group(head, Text(), *notes, Text(), Columns([_epoch_table(progress), _checkpoint_table(progress)]))


def _epoch_table(progress: Progress) -> Table:
    table = _table("epoch", "attempt", "rows", "rows/s", "chk")
    for epoch in progress.epochs[-_SHOWN_EPOCHS:]:
        mark = "" if epoch.checkpoint is None else str(epoch.checkpoint)
        # An epoch of an attempt that failed may have been undone: what counts is what the newest one says.
        style = "" if epoch.attempt == progress.attempt else "dim"
        cells = (str(epoch.number), str(epoch.attempt), f"{epoch.rows:,}", f"{epoch.rows_per_second:,.0f}", mark)
        table.add_row(*cells, style=style)
    return table


def _checkpoint_table(progress: Progress) -> Table:
    table = _table("chk", "checkpoint", "image", "written", "took")
    for checkpoint in progress.checkpoints[-_SHOWN_CHECKPOINTS:]:
        duration = "" if checkpoint.duration_ms is None else f"{checkpoint.duration_ms:,} ms"
        style = "red" if checkpoint.status == "failed" else ""
        cells = (str(checkpoint.number), checkpoint.status, checkpoint.kind, _size(checkpoint.written_bytes), duration)
        table.add_row(*cells, style=style)
    return table


def _table(*columns: str) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, show_edge=False)
    for name in columns:
        table.add_column(name, justify="left" if name in ("checkpoint", "image") else "right")
    return table


def _checkpoint_text(checkpoint: CheckpointLine) -> str:
    return f"{checkpoint.status}, {checkpoint.kind}, {_size(checkpoint.written_bytes)} in {checkpoint.duration_ms:,} ms"


def _size(count: int) -> str:
    return f"{count / 1024:,.0f} kB" if count >= 1024 else f"{count} B"
