"""The contract of a local store: the bytes of one (operator, subtask), versioned by epoch.

A backend is a kind of store. Everything above it (states, caches, timers, serializers) is shared, so that
a backend is small: open at a stamp, read, write, commit under the next stamp, step back once, tell what changed.

Stored key = key group (2 bytes, big endian), state id (2 bytes, big endian), then what the state puts there.
Key groups are below 0x8000; keys that begin with LOCAL_PREFIX are derived data (the timer index): they are
versioned like all others and never leave the host.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.state.handles import NativeImage
    from holdfast.state.keygroups import KeyGroupRange
    from holdfast.state.snapshot_io import SnapshotReader
    from holdfast.state.strategies import SnapshotStrategy

LOCAL_PREFIX = b"\xff\xff"


@dataclass(frozen=True, slots=True)
class Stamp:
    """The version of a store: the epoch it holds and the nonce of the execution that committed it."""

    epoch: int
    nonce: str


@dataclass(frozen=True, slots=True)
class ChangedKeys:
    """What epochs after a given one changed, in order of application: ranges that were deleted, then keys.

    ``keys`` are sorted and unique, each to be read for its present value (absent: a tombstone).
    """

    ranges: tuple[tuple[bytes, bytes], ...]
    keys: list[bytes]


@dataclass(frozen=True, slots=True)
class Layer:
    """Changes on top of a database, in order of application: ranges that are deleted, then entries in batches (None
    deletes), no key twice.
    """

    batches: Iterable[Sequence[tuple[bytes, bytes | None]]]
    ranges: Sequence[tuple[bytes, bytes]] = ()
    #: Of the file that it is stored in; 0 where there is none.
    size: int = 0


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a kind of store can do beside what every store must. The suites of ``holdfast.testing.contracts`` try what
    is declared.
    """

    #: Its snapshots may be files of its own: ``LocalStore.load_native`` takes them back as they are, and
    #: ``StateBackend.native_entries`` reads them for every other backend.
    native_images: bool = False
    #: Several processes of a host may have a store open: whoever looks at its ``stamp`` does not wait for another one's
    #: transaction. Otherwise one has it at a time, and whoever comes next takes it over.
    several_processes: bool = False
    #: What a process holds in memory does not grow with the state.
    bounded_memory: bool = False


class LocalStore(ABC):
    """One store on the host's disk, opened by one task at a time.

    Life of a task: ``begin(base)`` -> reads and writes -> ``commit(stamp)`` or ``rollback()``. A process that dies
    in between leaves the store at ``base``. ``begin`` on a store that was committed past ``base`` by an execution that
    nobody accepted steps back to ``base`` (one epoch at least); it raises ``StoreVersionError`` where it cannot.
    The object may be kept open by a worker between tasks; other processes of the host may open the same
    directory meanwhile, so everything cached outside of a transaction is checked against ``stamp``.
    """

    @abstractmethod
    def stamp(self) -> Stamp | None:
        """The stamp the store is at now; None when it was never loaded."""

    @abstractmethod
    def load(self, entries: Iterable[Sequence[tuple[bytes, bytes | None]]], stamp: Stamp) -> None:
        """Replace the whole content, in batches (None deletes), and commit it as ``stamp`` with no change marks."""

    @abstractmethod
    def begin(self, base: Stamp) -> None:
        """Start the transaction of epoch ``base.epoch + 1``."""

    @abstractmethod
    def get(self, key: bytes) -> bytes | None: ...

    @abstractmethod
    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]: ...

    @abstractmethod
    def write(self, entries: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Put or, where the value is None, delete. Keys within one call are unique."""

    @abstractmethod
    def delete_range(self, start: bytes, end: bytes) -> None:
        """Delete all keys in [start, end)."""

    @abstractmethod
    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Entries of [start, end) in key order. Writing while a scan is open is allowed behind its position only."""

    @abstractmethod
    def last_key(self, start: bytes, end: bytes) -> bytes | None:
        """The greatest key in [start, end)."""

    @abstractmethod
    def commit(self, stamp: Stamp) -> None:
        """Make the transaction the store's content, with an undo to its base and its change marks."""

    @abstractmethod
    def rollback(self) -> None:
        """Drop the transaction. Allowed when none is open."""

    @abstractmethod
    def changes_since(self, epoch: int) -> ChangedKeys | None:
        """What epochs later than ``epoch`` changed, the running one included; None when marks do not reach back so
        far.
        """

    @abstractmethod
    def forget_changes(self, epoch: int) -> None:
        """Change marks of epochs up to ``epoch`` are in a completed checkpoint and no longer needed."""

    @abstractmethod
    def close(self) -> None: ...

    def strategies(self, of_entries: Sequence[SnapshotStrategy]) -> Sequence[SnapshotStrategy]:
        """The ways to snapshot this store, in the order in which they are asked. ``of_entries`` are those that every
        store has: changed keys, and everything, which comes last. An engine may have its own beside them.
        """
        return of_entries

    def load_native(self, image: NativeImage, reader: SnapshotReader, layers: Sequence[Layer], stamp: Stamp) -> bool:
        """As ``load``, with the files of a database of the same engine, and ``layers`` on top of them; changes are
        known from there on. False, and nothing is done, where the store cannot take them.
        """
        return False


class StateBackend(ABC):
    """A kind of store, found by name through the entry point group ``holdfast.state_backends``.

    An entry point names a callable that takes the backend's options (a mapping of configuration keys) and gives one
    of these. Instances are picklable: they travel to the executors.
    """

    #: The name of its entry point, and of the engine in its native images.
    name: str
    capabilities: Capabilities = Capabilities()
    #: Entries that the live-object cache keeps between epochs; None is no limit, which is not for bounded memory.
    cache_limit: int | None

    @abstractmethod
    def open(self, directory: Path) -> LocalStore:
        """Open or create the store of ``directory``, which is this store's alone."""

    def copy(self, source: Path, target: Path, stamp: Stamp) -> bool:
        """Copy the store of one directory into another one, which does not exist yet: as it was at ``stamp``, the epoch
        of a checkpoint, or as it was committed later, so that it may be able to step back to it.

        Whoever still has the source open is neither waited for nor disturbed. False where that cannot be done;
        StoreDamagedError where the source does not hold what was written to it, which a copy must find out.
        """
        return False

    def native_entries(
        self, image: NativeImage, reader: SnapshotReader, key_groups: KeyGroupRange, scratch: Path | None
    ) -> Iterator[tuple[bytes, bytes]]:
        """The entries of some key groups, in key order, of an image that a store of this kind has made; for every
        restore that cannot take its files as they are. They may be put into a folder below ``scratch`` meanwhile.

        The backend is made without options then: by its entry point with an empty mapping. What the files hold, and
        what they are called, is between ``native_entries``, ``load_native`` and the strategy that made the image.
        """
        raise NotImplementedError(f"The backend '{self.name}' declares native images, and does not read them.")

    def options(self) -> dict[str, Any]:
        """The configuration that makes an equal one."""
        return {}
