"""Which states an operator declares, found out by opening it: functions name them in ``initialize_state`` and ``open``.

The operator runs in this process against backends that remember what is asked for. Its keyed state is empty; its
operator state is what the first subtask would restore, since functions read it when they are initialised. A state that
cannot be restored is replaced by an empty one, so that one refusal does not hide the others.
"""

from __future__ import annotations

import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.errors import RestoreError, StateError, StateMigrationError
from holdfast.runtime.environment import OperatorEnvironment
from holdfast.runtime.functions import FunctionOperator
from holdfast.runtime.plan import JobPlan, OperatorSpec
from holdfast.runtime.restored_state import open_raw_state, restored_lists
from holdfast.runtime.source import ReadingFunction
from holdfast.runtime.state_context import OperatorStateContext
from holdfast.runtime.timer_service import InternalTimeServiceManager
from holdfast.state.broadcast_state import BroadcastState
from holdfast.state.descriptors import ListStateDescriptor, MapStateDescriptor, StateDescriptor
from holdfast.state.handles import DistributionMode, ListStateSnapshot, OperatorRecord, StateMeta
from holdfast.state.heap.backend import HeapBackend
from holdfast.state.keyed_backend import KeyedScope, KeyedStateBackend
from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.keys import KeyCodec
from holdfast.state.operator_state import DefaultOperatorStateBackend, PartitionableListState, RegisteredStates
from holdfast.state.snapshot_io import SnapshotReader
from holdfast.state.store import Stamp

_START = Stamp(0, "rehearsal")


@dataclass
class Declarations:
    """What an operator asked for. ``unknown`` says why it may ask for more that nobody saw."""

    #: With its descriptor; timers have none.
    keyed: dict[str, tuple[StateMeta, StateDescriptor | None]] = field(default_factory=dict)
    lists: dict[tuple[str, DistributionMode], StateDescriptor] = field(default_factory=dict)
    unknown: str | None = None
    #: Why the operator cannot go on from what was restored, in its own words.
    refusal: str | None = None
    #: Whether it asked for its raw keyed and its raw operator state.
    raw_asked: tuple[bool, bool] = (False, False)


@dataclass(frozen=True)
class Occasion:
    """When an operator is opened: for which job and snapshot, and whether its function may be called."""

    plan: JobPlan
    checkpoint_id: int
    open_functions: bool


def declarations_of(
    spec: OperatorSpec, record: OperatorRecord | None, reader: SnapshotReader, occasion: Occasion
) -> Declarations:
    """Open the operator as its first subtask and close it again."""
    found = Declarations()
    with tempfile.TemporaryDirectory(prefix="holdfast-rehearsal-") as directory:
        state = OperatorStateContext(
            _RecordingOperatorState(spec.describe(0), restored_lists(spec, 0, record, reader), found),
            restored_checkpoint_id=occasion.checkpoint_id,
            has_restored_state=record is not None,
        )
        open_raw_state(state, spec, 0, record, reader)
        keyed_state = _RecordingKeyedState(spec, Path(directory), record) if spec.keyed else None
        if keyed_state is not None:
            state.keyed_state, state.timers = keyed_state, InternalTimeServiceManager(keyed_state)
        plan = occasion.plan
        environment = OperatorEnvironment(spec, plan.job_id, plan.job_name, 0, 0, state, parameters=plan.parameters)
        try:
            found.unknown = _open(spec, environment, occasion.open_functions)
        except (RestoreError, StateMigrationError) as error:
            found.refusal = str(error)
        finally:
            found.raw_asked = state.raw_keyed_inputs.asked, state.raw_operator_inputs.asked
            state.close_raw_inputs()
            if keyed_state is not None:
                found.keyed = keyed_state.declared()
                keyed_state.store.close()
    return found


def _open(spec: OperatorSpec, environment: OperatorEnvironment, open_functions: bool) -> str | None:
    """Take the operator through the steps in which states are declared; why that came to no end. RestoreError or
    StateMigrationError where the operator refuses what was restored: it will do so on the executors too.
    """
    step = "bind_state"
    try:
        operator = spec.factory(spec)
        operator.setup(environment)
        operator.bind_state()
        if not isinstance(operator, FunctionOperator):
            return None
        if not open_functions and not isinstance(operator.function, ReadingFunction):
            return "declared at run time: functions were not opened"
        step = "initialize_state"
        operator.initialize_state()
        # Only keyed state can be declared in open(), which may do much else: it is spared where it can declare nothing.
        if spec.keyed:
            step = "open"
            try:
                operator.open()
            finally:
                with suppress(Exception):
                    operator.close()
    except (RestoreError, StateMigrationError):
        raise
    except Exception as error:
        return f"declared at run time: {step}() failed here ({type(error).__name__}: {error})"
    return None


class _RecordingKeyedState(KeyedStateBackend):
    """Empty, so that everything can be registered; what was, is what the operator declares. Whoever asks is told which
    states the snapshot has.
    """

    def __init__(self, spec: OperatorSpec, directory: Path, record: OperatorRecord | None) -> None:
        store = HeapBackend().open(directory)
        store.load([], _START)
        store.begin(_START)
        codec = KeyCodec.for_type(spec.key_type)
        key_groups = KeyGroupRange.of(0, spec.max_parallelism, spec.parallelism)
        super().__init__(store, KeyedScope(spec.name, codec, key_groups, spec.max_parallelism), "heap", None)
        self._descriptors: dict[str, StateDescriptor] = {}
        stored = [one.keyed for one in record.subtasks if one.keyed is not None] if record is not None else []
        self._restored = {meta.name for snapshot in stored for meta in snapshot.states}

    def state(self, descriptor: StateDescriptor, namespace_type: Any = None, owned: bool = False) -> Any:
        state = super().state(descriptor, namespace_type, owned)
        self._descriptors[descriptor.get_name()] = descriptor
        return state

    def restored_names(self) -> set[str]:
        return self._restored

    def declared(self) -> dict[str, tuple[StateMeta, StateDescriptor | None]]:
        return {meta.name: (meta, self._descriptors.get(meta.name)) for meta in self.states_meta()}


class _RecordingOperatorState(DefaultOperatorStateBackend):
    def __init__(self, where: str, restored: tuple[ListStateSnapshot, ...], found: Declarations) -> None:
        super().__init__(where, RegisteredStates.of(restored))
        self._empty = DefaultOperatorStateBackend(where)
        self._found = found

    def get_list_state(self, descriptor: ListStateDescriptor) -> PartitionableListState:
        self._found.lists[descriptor.get_name(), DistributionMode.SPLIT_DISTRIBUTE] = descriptor
        try:
            return super().get_list_state(descriptor)
        except (StateError, RestoreError):
            return self._empty.get_list_state(descriptor)

    def get_union_list_state(self, descriptor: ListStateDescriptor) -> PartitionableListState:
        self._found.lists[descriptor.get_name(), DistributionMode.UNION] = descriptor
        try:
            return super().get_union_list_state(descriptor)
        except (StateError, RestoreError):
            return self._empty.get_union_list_state(descriptor)

    def get_broadcast_state(self, descriptor: MapStateDescriptor) -> BroadcastState:
        self._found.lists[descriptor.get_name(), DistributionMode.BROADCAST] = descriptor
        try:
            return super().get_broadcast_state(descriptor)
        except (StateError, RestoreError):
            return self._empty.get_broadcast_state(descriptor)
