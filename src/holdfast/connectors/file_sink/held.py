"""Files that wait in staging over checkpoints, and the decision when they go."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from holdfast.connectors.file_sink.options import FileSinkOptions


class HeldFile(msgspec.Struct, frozen=True):
    """A complete file in staging that no transaction publishes yet. It is part of the state of its subtask."""

    #: The sink's path when it was written, and the file's path below it.
    root: str
    path: str
    bucket: str
    size: int
    checksum: str
    layout: str
    suffix: str
    #: When its first and its last row came.
    first_ms: int
    last_ms: int
    #: The rolling policy ended it: later rows go to another file.
    rolled: bool = False
    #: How many checkpoints it has seen.
    checkpoints: int = 0


@dataclass(frozen=True, slots=True)
class Moment:
    """The end of an epoch, as far as it matters for files that wait."""

    now_ms: int
    #: A checkpoint is taken behind it.
    checkpoint: bool = False
    #: Nothing may wait any longer.
    flush: bool = False
    #: No more rows will come.
    ended: bool = False


def due_count(files: Sequence[HeldFile], options: FileSinkOptions, moment: Moment) -> int:
    """How many files of one bucket, from the first, are published with the epoch that ends."""
    if moment.flush:
        return len(files)
    if options.compaction is not None:
        size, checkpoints = sum(file.size for file in files), max(file.checkpoints for file in files)
        return len(files) if options.compaction.strategy.is_due(size, checkpoints) else 0
    rolled = max((number for number, file in enumerate(files, start=1) if file.rolled), default=0)
    rest = files[rolled:]
    if rest and _publishes(rest, options, moment):
        return len(files)
    return rolled


def _publishes(files: Sequence[HeldFile], options: FileSinkOptions, moment: Moment) -> bool:
    first, last = min(file.first_ms for file in files), max(file.last_ms for file in files)
    size = sum(file.size for file in files)
    return options.rolling.publishes(size, moment.now_ms - first, moment.now_ms - last)


def packed(files: Iterable[HeldFile], part_size: int | None, over_rolled: bool = True) -> list[list[HeldFile]]:
    """Groups of files to join: of one layout, in their order, each below the size unless one file is larger; unless
    ``over_rolled``, none goes on behind a file that the rolling policy ended.
    """
    groups: list[list[HeldFile]] = []
    size = 0
    for file in files:
        fits = part_size is None or size + file.size <= part_size
        last = groups[-1][-1] if groups else None
        if last is not None and fits and last.layout == file.layout and (over_rolled or not last.rolled):
            groups[-1].append(file)
            size += file.size
        else:
            groups.append([file])
            size = file.size
    return groups
