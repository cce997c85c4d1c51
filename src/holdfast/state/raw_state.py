"""Raw state: bytes that an operator writes itself, per key group or in partitions, with Flink's names.

Holdfast does not look into them. Raw keyed state follows its key groups to other subtasks; partitions of raw operator
state are split like the elements of a list. Both are written whole at every checkpoint and are in no local store:
between checkpoints an operator keeps in its fields what it will write.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, BinaryIO, Generic, Self, TypeVar

from holdfast.errors import StateAccessError
from holdfast.state.canonical.operator_tables import PartsTableReader
from holdfast.state.handles import DistributionMode, FileHandle, ListStateIndex, RawKeyedSnapshot, SubtaskSnapshot
from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.parts_file import PartsFileReader, encode_parts_file
from holdfast.state.redistribution import redistribute
from holdfast.state.snapshot_io import SnapshotReader

# -- written at a checkpoint


class _PartsOutput(io.RawIOBase):
    """A stream whose bytes go into the part that was started last. Open during ``snapshot_state`` only."""

    _start: str

    def __init__(self, where: str) -> None:
        super().__init__()
        self._where = where
        self._parts: list[bytearray] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self._check_open()
        if not self._parts:
            raise StateAccessError(f"{self._where} writes raw state and has not called {self._start} before.")
        before = len(self._parts[-1])
        self._parts[-1] += data
        return len(self._parts[-1]) - before

    def _check_open(self) -> None:
        if self.closed:
            raise StateAccessError(f"{self._where}: raw state can be written during snapshot_state only.")


class KeyedStateCheckpointOutputStream(_PartsOutput):
    """Raw keyed state: ``start_new_key_group(g)``, then its bytes; each key group at most once, in any order."""

    _start = "start_new_key_group(key_group)"

    def __init__(self, where: str, key_groups: KeyGroupRange) -> None:
        super().__init__(where)
        self._key_groups = key_groups
        self._started: list[int] = []

    def get_key_group_list(self) -> list[int]:
        """The key groups of this subtask."""
        return list(self._key_groups)

    def start_new_key_group(self, key_group: int) -> None:
        self._check_open()
        if key_group not in self._key_groups:
            raise StateAccessError(
                f"{self._where} starts key group {key_group!r} of its raw keyed state; it has the key groups "
                f"{self._key_groups.start} to {self._key_groups.end}. get_key_group_list() gives them."
            )
        if key_group in self._started:
            raise StateAccessError(
                f"{self._where} starts key group {key_group} of its raw keyed state twice; write all of it at once."
            )
        self._started.append(key_group)
        self._parts.append(bytearray())

    def encode(self) -> bytes | None:
        """The file of what was written; None when nothing was."""
        return encode_parts_file(self._started, [bytes(part) for part in self._parts]) if self._started else None


class OperatorStateCheckpointOutputStream(_PartsOutput):
    """Raw operator state: ``start_new_partition()``, then its bytes. A partition is never cut."""

    _start = "start_new_partition()"

    def start_new_partition(self) -> None:
        self._check_open()
        self._parts.append(bytearray())

    def get_number_of_partitions(self) -> int:
        return len(self._parts)

    def encode(self) -> bytes | None:
        return encode_parts_file(None, [bytes(part) for part in self._parts]) if self._parts else None


class RawStateOutputs:
    """The raw streams of one subtask for one checkpoint, made when they are asked for. ``key_groups`` is None for an
    operator without keys.
    """

    def __init__(self, where: str, key_groups: KeyGroupRange | None) -> None:
        self._where = where
        self._key_groups = key_groups
        self._keyed: KeyedStateCheckpointOutputStream | None = None
        self._operator: OperatorStateCheckpointOutputStream | None = None

    def keyed(self) -> KeyedStateCheckpointOutputStream:
        if self._key_groups is None:
            raise StateAccessError(
                f"{self._where}: raw keyed state exists behind a key_by(...) only. Write raw operator state instead."
            )
        if self._keyed is None:
            self._keyed = KeyedStateCheckpointOutputStream(self._where, self._key_groups)
        return self._keyed

    def operator(self) -> OperatorStateCheckpointOutputStream:
        if self._operator is None:
            self._operator = OperatorStateCheckpointOutputStream(self._where)
        return self._operator

    def encoded_keyed(self) -> bytes | None:
        return None if self._keyed is None else self._keyed.encode()

    def encoded_operator(self) -> bytes | None:
        return None if self._operator is None else self._operator.encode()

    def close(self) -> None:
        """``snapshot_state`` has returned, or failed: nothing more can be written."""
        for stream in (self._keyed, self._operator):
            if stream is not None:
                stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


# -- read at a restore


class StatePartitionStreamProvider:
    """One partition of restored raw operator state. Its bytes are read when its stream is asked for."""

    def __init__(self, open_stream: Callable[[], BinaryIO]) -> None:
        self._open_stream = open_stream

    def get_stream(self) -> BinaryIO:
        """A stream over the partition, open until ``initialize_state`` returns."""
        return self._open_stream()


class KeyGroupStatePartitionStreamProvider(StatePartitionStreamProvider):
    """The restored raw state of one key group."""

    def __init__(self, key_group: int, open_stream: Callable[[], BinaryIO]) -> None:
        super().__init__(open_stream)
        self._key_group = key_group

    def get_key_group_id(self) -> int:
        return self._key_group


Provider = TypeVar("Provider", bound=StatePartitionStreamProvider)


class RawStateInputs(Generic[Provider]):
    """What a subtask restores of raw state. Closing it closes every stream that was given out."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._providers: list[Provider] = []
        #: The operator asked for them: what it does not read it does not want.
        self.asked = False

    def open(self, handle: FileHandle, reader: SnapshotReader, keyed: bool) -> PartsFileReader | PartsTableReader:
        if handle.table is not None:
            return self._stack.enter_context(PartsTableReader.of_raw(handle, keyed, reader))
        return self._stack.enter_context(PartsFileReader(handle, reader))

    def stream(self, file: PartsFileReader | PartsTableReader, part: int) -> Callable[[], BinaryIO]:
        def open_stream() -> BinaryIO:
            return self._stack.enter_context(io.BytesIO(file.read([part])[0]))

        return open_stream

    def add(self, provider: Provider) -> None:
        self._providers.append(provider)

    def __len__(self) -> int:
        return len(self._providers)

    def __iter__(self) -> Iterator[Provider]:
        return iter(self._providers)

    def close(self) -> None:
        self._stack.close()


RawKeyedInputs = RawStateInputs[KeyGroupStatePartitionStreamProvider]
RawOperatorInputs = RawStateInputs[StatePartitionStreamProvider]


def open_raw_keyed(
    written: Sequence[RawKeyedSnapshot], key_groups: KeyGroupRange, reader: SnapshotReader
) -> RawKeyedInputs:
    """The key groups of ``key_groups`` that the old subtasks wrote, in their order."""
    inputs: RawKeyedInputs = RawStateInputs()
    try:
        found: list[tuple[int, Callable[[], BinaryIO]]] = []
        for snapshot in written:
            if KeyGroupRange(snapshot.first_key_group, snapshot.last_key_group).intersects(key_groups):
                file = inputs.open(snapshot.handle, reader, keyed=True)
                groups = file.key_groups() if isinstance(file, PartsTableReader) else file.info(list[int])
                found += [(g, inputs.stream(file, part)) for part, g in enumerate(groups) if g in key_groups]
        for key_group, open_stream in sorted(found, key=lambda one: one[0]):
            inputs.add(KeyGroupStatePartitionStreamProvider(key_group, open_stream))
    except BaseException:
        inputs.close()
        raise
    return inputs


def open_raw_operator(
    written: Sequence[SubtaskSnapshot], subtask: int, parallelism: int, reader: SnapshotReader
) -> RawOperatorInputs:
    """The partitions that redistribution gives to a subtask: its own, or, with another parallelism, a share of all."""
    inputs: RawOperatorInputs = RawStateInputs()
    try:
        handles = [one.raw_operator for one in written]
        files = [None if handle is None else inputs.open(handle, reader, keyed=False) for handle in handles]
        stored: list[tuple[ListStateIndex, ...]] = []
        for number, file in enumerate(files):
            places = tuple((number, part) for part in range(len(file))) if file is not None else ()
            stored.append((ListStateIndex("raw", DistributionMode.SPLIT_DISTRIBUTE, {}, places),))
        for share in redistribute(stored, parallelism)[subtask]:
            for number, part in share.elements:
                opened = files[number]
                assert opened is not None
                inputs.add(StatePartitionStreamProvider(inputs.stream(opened, part)))
    except BaseException:
        inputs.close()
        raise
    return inputs
