"""The contract of snapshot strategies: how the keyed state of a subtask becomes stored files.

A strategy runs in two steps. ``prepare`` runs inside the task, before its commit, and pins what is to be stored, so
that later epochs change nothing of it. What it gives is written later, perhaps in another thread, while the next epochs
run, and can be cancelled before every file. ``state/snapshots.py`` chooses the strategy and runs both steps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from holdfast.state.handles import CheckpointRequest, KeyedSnapshot
from holdfast.state.keyed_backend import KeyedStateBackend
from holdfast.state.snapshot_io import SnapshotWriter


class PreparedSnapshot(ABC):
    """A pinned view of a subtask's keyed state, to be written once."""

    #: The name of the strategy that made it.
    strategy: str

    @abstractmethod
    def write(
        self, writer: SnapshotWriter, name: str, shared: bool, heartbeat: Callable[[], None] | None
    ) -> KeyedSnapshot:
        """Store it. ``name`` is unique for operator, subtask and execution; ``shared`` says whether later checkpoints
        may use its files.

        ``heartbeat`` is called before every file; what it raises cancels the rest.
        """

    def release(self) -> None:
        """It was written, or will not be: let go of what was kept for it."""


class SnapshotStrategy(ABC):
    """One way to take a snapshot."""

    name: str

    @abstractmethod
    def prepare(
        self, backend: KeyedStateBackend, request: CheckpointRequest, base_epoch: int | None
    ) -> PreparedSnapshot | None:
        """Pin the content of the store as it is now, changes of the running epoch included; the runner has written them
        there. Something is left out only if the checkpoint of ``base_epoch`` has it.

        None where this strategy cannot do it: then another one is asked.
        """


def empty_frame(backend: KeyedStateBackend) -> KeyedSnapshot:
    """What stored files are put into."""
    scope = backend.scope
    return KeyedSnapshot(
        first_key_group=scope.key_groups.start,
        last_key_group=scope.key_groups.end,
        files=(),
        states=backend.states_meta(),
        key_serializer=scope.key_codec.snapshot(),
        backend=backend.backend_name,
        key_version=scope.key_version,
    )
