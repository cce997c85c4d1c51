"""Where Spark's streams stand, as files: read from the checkpoint directory of a query, kept as operator state of each
stream, and written to the directory of the next query. Pure file logic.

A query keeps one offset log for all of its sources, a line for each, so one number is one cut through all of them. Of
that log the position of a stream has its own lines. So streams can be added, removed and put in another order between
two runs.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from holdfast.errors import EpochError, RestoreError
from holdfast.spark.internals.file_source_log import cut_log

_FORMAT = "spark-stream/1"
_LOG_VERSION = "v1"
#: The line of a source that has given nothing yet.
_NONE_YET = "-"


@dataclass(frozen=True)
class StreamSource:
    """One source that Spark reads a stream from."""

    #: The name of its format.
    kind: str
    #: Spark's own source of files, which keeps a log of them.
    lists_files: bool = False
    #: It does nothing when Spark says that it will not ask for a slice again.
    keeps_everything: bool = False


class SourcePosition(msgspec.Struct, frozen=True):
    """What the checkpoint directory has of one source: its lines of the last two offsets, and its own files."""

    kind: str
    before: str
    offset: str
    files: dict[str, bytes]


class StreamPosition(msgspec.Struct, frozen=True):
    """Where a stream stands behind micro-batch ``batch``; -1 in front of the first."""

    batch: int
    #: What Spark stored with the last two offsets beside the lines of sources.
    metadata_before: str
    metadata: str
    sources: tuple[SourcePosition, ...]
    format: str = _FORMAT

    def encode(self) -> bytes:
        return msgspec.msgpack.encode(self)


def decode_position(data: bytes, name: str) -> StreamPosition:
    """RestoreError when the bytes are the state of something else; ``name`` is that of the stream."""
    try:
        position = msgspec.msgpack.decode(data, type=StreamPosition)
    except (msgspec.MsgspecError, ValueError) as cause:
        raise RestoreError(
            f"The snapshot has state of another operator under the id of the stream '{name}', which cannot go on from "
            f"it: {cause}. Give the stream another uid."
        ) from cause
    if position.format != _FORMAT:
        raise RestoreError(
            f"The position of the stream '{name}' is stored as {position.format!r}; this version of Holdfast reads "
            f"{_FORMAT!r}. Restore with the version that wrote it."
        )
    return position


def check_position(position: StreamPosition, sources: Sequence[StreamSource], name: str) -> None:
    """RestoreError when the stream reads other sources than it did."""
    stored, wanted = [one.kind for one in position.sources], [one.kind for one in sources]
    if stored != wanted:
        raise RestoreError(
            f"The stream '{name}' was stored with the sources {stored} and now has {wanted}: their positions do not "
            "fit. Give it another uid to read it from its beginning, or the sources that it had."
        )


def read_positions(directory: Path, batch: int, streams: Sequence[Sequence[StreamSource]]) -> list[StreamPosition]:
    """Where each of a query's ``streams`` stands behind micro-batch ``batch``. The query may be preparing the next."""
    count = sum(map(len, streams))
    metadata, offsets = _read_offsets(directory, batch, count)
    metadata_before, before = _read_offsets(directory, batch - 1, count)
    positions, number = [], 0
    for sources in streams:
        found = []
        for source in sources:
            files = _source_files(directory / "sources" / str(number), source, offsets[number])
            found.append(SourcePosition(source.kind, before[number], offsets[number], files))
            number += 1
        positions.append(StreamPosition(batch, metadata_before, metadata, tuple(found)))
    return positions


def write_fork(
    directory: Path, positions: Sequence[StreamPosition | None], streams: Sequence[Sequence[StreamSource]]
) -> int:
    """Make ``directory`` that of a query which goes on from ``positions``; a stream without one begins anew. The number
    of the micro-batch that it goes on behind, -1 for none.
    """
    known = [position for position in positions if position is not None]
    batches = {position.batch for position in known}
    if len(batches) > 1:
        raise RestoreError(f"The streams of a snapshot stand behind different micro-batches: {sorted(batches)}.")
    directory.mkdir(parents=True)
    # An id of its own: a query of the same id that still runs would be stopped.
    _write(directory / "metadata", json.dumps({"id": str(uuid.uuid4())}))
    all_sources: list[SourcePosition] = []
    for position, sources in zip(positions, streams, strict=True):
        anew = [SourcePosition(source.kind, _NONE_YET, _NONE_YET, {}) for source in sources]
        all_sources += anew if position is None else position.sources
    for number, source in enumerate(all_sources):
        for name, data in source.files.items():
            _write(directory / "sources" / str(number) / name, data)
    batch = batches.pop() if batches else -1
    if batch >= 0:
        _write_offsets(directory, batch, known[0].metadata, [source.offset for source in all_sources])
        watermark = json.loads(known[0].metadata).get("batchWatermarkMs", 0)
        _write(directory / "commits" / str(batch), f'{_LOG_VERSION}\n{{"nextBatchWatermarkMs":{watermark}}}')
    if batch > 0:
        _write_offsets(directory, batch - 1, known[0].metadata_before, [source.before for source in all_sources])
    return batch


def _read_offsets(directory: Path, batch: int, count: int) -> tuple[str, list[str]]:
    if batch < 0:
        return "", [_NONE_YET] * count
    version, metadata, *offsets = (directory / "offsets" / str(batch)).read_text().split("\n")
    if version != _LOG_VERSION or len(offsets) != count:
        raise EpochError(
            f"Spark's offset log is of version {version!r} with {len(offsets)} sources; expected {_LOG_VERSION!r} with "
            f"{count}. Leave spark.sql.streaming.offsetLog.formatVersion and "
            "spark.sql.streaming.queryEvolution.enableSourceEvolution at their defaults."
        )
    return metadata, offsets


def _write_offsets(directory: Path, batch: int, metadata: str, offsets: list[str]) -> None:
    _write(directory / "offsets" / str(batch), "\n".join([_LOG_VERSION, metadata, *offsets]))


def _source_files(directory: Path, source: StreamSource, offset: str) -> dict[str, bytes]:
    """What a source keeps in its folder, as it was when it stood at ``offset``."""
    last = json.loads(offset)["logOffset"] if source.lists_files and offset != _NONE_YET else -1
    if source.lists_files and last < 0:
        return {}
    files = _read_folder(directory)
    return cut_log(files, last) if source.lists_files else files


def _read_folder(directory: Path) -> dict[str, bytes]:
    """All files; those that vanish meanwhile belong to nobody any more. Files that begin with a dot are checksums, or
    not complete.
    """
    files: dict[str, bytes] = {}
    for path in sorted(directory.rglob("*")) if directory.is_dir() else ():
        if path.is_dir() or path.name.startswith("."):
            continue
        try:
            files[path.relative_to(directory).as_posix()] = path.read_bytes()
        except FileNotFoundError:
            continue
    return files


def _write(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
