"""The files that one task writes in one epoch."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, BinaryIO, cast

import pyarrow as pa

from holdfast.connectors.file_sink.compaction import ConcatFileCompactor, FileCompactor
from holdfast.connectors.file_sink.formats import SinkFormat
from holdfast.connectors.file_sink.held import HeldFile, packed
from holdfast.connectors.file_sink.naming import StagedFile, committed_name
from holdfast.connectors.file_sink.options import FileSinkOptions
from holdfast.connectors.file_sink.part import Part
from holdfast.connectors.file_sink.partitions import PartitionSplitter, type_in_files
from holdfast.connectors.output_file import OutputFile
from holdfast.connectors.staged_files import staging_path
from holdfast.errors import CorruptFileError, TransactionError
from holdfast.failpoints import failpoint
from holdfast.runtime.batch import Batch
from holdfast.runtime.sink import TransactionName
from holdfast.storage.checksum import check_file
from holdfast.storage.filesystem import Storage
from holdfast.types.information import TypeInformation

#: So many files are open at a time. Rows of further buckets are collected until there are so many bytes of them.
MAX_OPEN_PARTS = 64
MAX_COLLECTED_BYTES = 64 << 20


class FileTransaction:
    """Opens a file at a bucket's first row, another one when the rolling policy says so. Joins files that waited."""

    def __init__(
        self,
        name: TransactionName,
        storage: Storage,
        format_and_type: tuple[SinkFormat, TypeInformation],
        options: FileSinkOptions,
    ) -> None:
        self.name = name
        self._storage = storage
        self._format, type_info = format_and_type
        self._options = options
        columns = options.partition_columns
        self._type = type_in_files(type_info, columns) if columns else type_info
        self._splitter = PartitionSplitter(type_info, columns) if columns else None
        self._parts: dict[str, Part] = {}
        #: Bucket -> when rows came, and the rows.
        self._collected: dict[str, list[tuple[int, Batch]]] = {}
        self._collected_bytes = 0
        self._written: list[HeldFile] = []
        #: How many files were begun in staging, and how many got a final name.
        self._staged = 0
        self._named = 0

    def write(self, batch: Batch) -> None:
        if not len(batch):
            return
        now_ms = self._options.now_ms()
        collects = False
        for bucket, rows in self._by_bucket(batch, now_ms):
            if bucket in self._parts or len(self._parts) < MAX_OPEN_PARTS:
                self._write(bucket, rows, now_ms)
            else:
                self._collected.setdefault(bucket, []).append((now_ms, rows))
                collects = True
        if collects:
            # All of the batch: what is left of it keeps the whole in memory.
            self._collected_bytes += batch.arrow.nbytes if batch.arrow is not None else MAX_COLLECTED_BYTES
            if self._collected_bytes >= MAX_COLLECTED_BYTES:
                self._write_collected()

    def finish(self) -> list[HeldFile]:
        """Make everything durable that was written."""
        for bucket in list(self._parts):
            self._end_part(bucket)
        self._write_collected()
        return self._written

    def publish(self, buckets: Iterable[Sequence[HeldFile]]) -> list[StagedFile]:
        """The files that are to appear, made from those that were written or waited: joined where that is wanted.
        Whatever waited is read and compared first: a crash of its host, or somebody else, may have changed it since.
        """
        buckets = list(buckets)
        written = {file.path for file in self._written}
        for file in (file for files in buckets for file in files if file.path not in written):
            self._check_waited(file)
        return [self._joined(group) for files in buckets for group in self._groups(files)]

    def discard(self) -> None:
        parts, self._parts = self._parts, {}
        try:
            for part in parts.values():
                part.discard()
        finally:
            for file in self._written:
                self._storage.delete(file.path)

    def _by_bucket(self, batch: Batch, now_ms: int) -> Iterator[tuple[str, Batch]]:
        bucket = self._options.buckets.bucket(now_ms / 1000)
        if self._splitter is None:
            yield bucket, batch
            return
        for folder, rows in self._splitter.split(batch):
            yield f"{bucket}/{folder}" if bucket else folder, rows

    def _write(self, bucket: str, rows: Batch, now_ms: int) -> None:
        part = self._parts.get(bucket)
        if part is None:
            part = Part(OutputFile(self._storage, self._next_staging_path()), self._format, self._type, now_ms)
            self._parts[bucket] = part
        part.write(rows, now_ms)
        if self._options.rolling.ends_part(part.size, now_ms - part.first_ms):
            self._end_part(bucket, rolled=True)

    def _write_collected(self) -> None:
        """Each bucket to a file of its own that ends at once."""
        collected, self._collected, self._collected_bytes = self._collected, {}, 0
        for bucket, batches in collected.items():
            for now_ms, rows in batches:
                self._write(bucket, rows, now_ms)
            if bucket in self._parts:
                self._end_part(bucket)

    def _end_part(self, bucket: str, rolled: bool = False) -> None:
        part = self._parts.pop(bucket)
        path, size, checksum = part.finish()
        kind = self._format.layout(self._type), self._suffix
        self._written.append(
            HeldFile(self._storage.uri, path, bucket, size, checksum, *kind, part.first_ms, part.last_ms, rolled)
        )

    def _compactor(self) -> FileCompactor:
        compaction = self._options.compaction
        chosen = compaction.compactor if compaction is not None else None
        return chosen or self._format.compactor()

    def _groups(self, files: Sequence[HeldFile]) -> list[list[HeldFile]]:
        """What becomes one file. Files that an earlier version of the program wrote in another format stay single."""
        compacts, rolling = self._options.compaction is not None, self._options.rolling
        if not self._compactor().joins or not (compacts or rolling.holds):
            return [[file] for file in files]
        layout = self._format.layout(self._type)
        groups = packed(files, rolling.part_size, over_rolled=compacts)
        return [part for group in groups for part in ([group] if group[0].layout == layout else [[f] for f in group])]

    def _joined(self, group: Sequence[HeldFile]) -> StagedFile:
        final = self._next_final_path(group[0])
        if len(group) == 1 and group[0].root == self._storage.uri:
            return StagedFile(group[0].path, final, group[0].size, group[0].checksum)
        compactor = self._compactor() if len(group) > 1 else ConcatFileCompactor()
        output = OutputFile(self._storage, self._next_staging_path())
        with ExitStack() as inputs, output:
            streams = [inputs.enter_context(self._opened(file)) for file in group]
            compactor.compact(streams, cast("BinaryIO", output.stream))
        path, size, checksum = output.written()
        failpoint("file-sink-joined", attempt=self.name.attempt, epoch=self.name.epoch, subtask=self.name.subtask)
        return StagedFile(path, final, size, checksum)

    def _next_staging_path(self) -> str:
        path = staging_path(self.name, self._staged, self._suffix)
        self._staged += 1
        return path

    def _next_final_path(self, file: HeldFile) -> str:
        name = committed_name(self.name, self._named, self._options.file_config.part_prefix, file.suffix)
        self._named += 1
        return f"{file.bucket}/{name}" if file.bucket else name

    @property
    def _suffix(self) -> str:
        return self._options.file_config.part_suffix or self._format.extension

    def _check_waited(self, file: HeldFile) -> None:
        try:
            check_file(self._storage_of(file), file.path, file.size, file.checksum)
        except CorruptFileError as cause:
            raise TransactionError(
                f"A file that waited in staging cannot be published: {cause}. Files in staging belong to the job: put "
                "back the file that was written, restore a checkpoint from before it was written, or give the sink "
                "another uid, and set execution.state-recovery.ignore-unclaimed-state, to go on without what waits."
            ) from cause

    def _storage_of(self, file: HeldFile) -> Storage:
        return self._storage if file.root == self._storage.uri else Storage.for_uri(file.root)

    @contextmanager
    def _opened(self, file: HeldFile) -> Iterator[BinaryIO]:
        with self._storage_of(file).open_input(file.path) as stream:
            # A stream of pyarrow's cannot read lines.
            beneath: Any = stream
            yield cast("BinaryIO", io.BufferedReader(beneath)) if isinstance(beneath, pa.NativeFile) else stream
