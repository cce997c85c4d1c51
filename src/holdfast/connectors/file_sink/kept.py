"""What a subtask of a file sink keeps from epoch to epoch, and in checkpoints."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from holdfast.connectors.file_sink.held import HeldFile, Moment, due_count
from holdfast.connectors.file_sink.options import FileSinkOptions
from holdfast.types.typeinfo import Types

#: Of one element in checkpoints: a file that waits, or, without a path, a bucket that is not finished.
KEPT_TYPE = Types.ROW_NAMED(
    [
        "root",
        "path",
        "bucket",
        "size",
        "checksum",
        "layout",
        "suffix",
        "first_ms",
        "last_ms",
        "rolled",
        "checkpoints",
    ],
    [
        Types.STRING(),
        Types.STRING(),
        Types.STRING(),
        Types.LONG(),
        Types.STRING(),
        Types.STRING(),
        Types.STRING(),
        Types.LONG(),
        Types.LONG(),
        Types.BOOLEAN(),
        Types.LONG(),
    ],
)
_FIELDS: tuple[str, ...] = HeldFile.__struct_fields__


@dataclasses.dataclass(slots=True)
class KeptFiles:
    """Files that wait in staging, and buckets that are not finished. Travels with the sink's fields."""

    held: list[HeldFile] = dataclasses.field(default_factory=list)
    #: Bucket -> when its last row came.
    buckets: dict[str, int] = dataclasses.field(default_factory=dict)

    def take_due(
        self, written: Sequence[HeldFile], options: FileSinkOptions, moment: Moment
    ) -> list[list[HeldFile]]:
        """The files to publish with the epoch that ends, by bucket; the others, of those just ``written`` too, wait."""
        by_bucket: dict[str, list[HeldFile]] = defaultdict(list)
        for file in [*self.held, *written]:
            seen = file.checkpoints + moment.checkpoint
            by_bucket[file.bucket].append(msgspec.structs.replace(file, checkpoints=seen))
        due = {bucket: due_count(files, options, moment) for bucket, files in by_bucket.items()}
        self.held = [file for bucket, files in by_bucket.items() for file in files[due[bucket] :]]
        return [files[: due[bucket]] for bucket, files in by_bucket.items() if due[bucket]]

    def note_rows(self, written: Iterable[HeldFile]) -> None:
        for file in written:
            if file.bucket:
                self.buckets[file.bucket] = max(file.last_ms, self.buckets.get(file.bucket, 0))

    def take_finished(self, options: FileSinkOptions, moment: Moment) -> dict[str, bool]:
        """For each bucket that rows went to, whether this subtask is done with it; finished ones are forgotten."""
        assert options.success_delay_ms is not None
        waiting = {file.bucket for file in self.held}
        # Files that wait may have come from another subtask, or from a version of the program without markers.
        self.note_rows(self.held)
        current = options.buckets.bucket(moment.now_ms / 1000)
        finished = {}
        for bucket, last_ms in self.buckets.items():
            goes_on = current and f"{bucket}/".startswith(f"{current}/")
            quiet = moment.now_ms - last_ms >= options.success_delay_ms and not goes_on
            finished[bucket] = bucket not in waiting and (moment.ended or quiet)
        self.buckets = {bucket: last_ms for bucket, last_ms in self.buckets.items() if not finished[bucket]}
        return finished

    def elements(self) -> list[tuple[Any, ...]]:
        """As a list state of ``KEPT_TYPE`` holds it."""
        held = [_stored(**msgspec.structs.asdict(file)) for file in self.held]
        return held + [_stored(bucket=bucket, last_ms=last_ms) for bucket, last_ms in self.buckets.items()]

    def restore(self, elements: Iterable[Sequence[Any]]) -> None:
        for element in elements:
            known = {name: value for name, value in zip(_FIELDS, element, strict=True) if value is not None}
            if "path" in known:
                self.held.append(msgspec.convert(known, HeldFile))
            else:
                bucket, last_ms = known["bucket"], known["last_ms"]
                self.buckets[bucket] = max(last_ms, self.buckets.get(bucket, 0))


def of_pickled(pickled: dict[str, Any]) -> tuple[Any, ...]:
    """An element of ``KEPT_TYPE``, of the dict that stood for it when they were pickled."""
    return _stored(**pickled.get("held", pickled))


def _stored(**known: Any) -> tuple[Any, ...]:
    return tuple(known.get(name) for name in _FIELDS)
