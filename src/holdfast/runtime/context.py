"""What user functions are given: PyFlink's contexts, and Flink's for checkpointed functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from holdfast.errors import StateAccessError
from holdfast.runtime.environment import OperatorEnvironment
from holdfast.runtime.generic_types import check_declared
from holdfast.runtime.metric_registry import ACCUMULATOR, METRIC
from holdfast.runtime.ready_files import DistributedCache

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.runtime.accumulators import Accumulator
    from holdfast.runtime.metrics import MetricGroup
    from holdfast.state.broadcast_state import BroadcastState
    from holdfast.state.descriptors import (
        AggregatingStateDescriptor,
        ListStateDescriptor,
        MapStateDescriptor,
        ReducingStateDescriptor,
        StateDescriptor,
        ValueStateDescriptor,
    )
    from holdfast.state.operator_state import PartitionableListState
    from holdfast.state.raw_state import (
        KeyedStateCheckpointOutputStream,
        KeyGroupStatePartitionStreamProvider,
        OperatorStateCheckpointOutputStream,
        RawStateOutputs,
        StatePartitionStreamProvider,
    )
    from holdfast.state.states import AggregatingState, ListState, MapState, ReducingState, ValueState


#: Kinds of handles that a function may hold in its fields.
KEYED, LIST, UNION_LIST, BROADCAST = "keyed", "list", "union", "broadcast"
READ_ONLY_BROADCAST = "read-only broadcast"


class KeyedStateStore:
    """Keyed state by descriptor."""

    def __init__(self, environment: OperatorEnvironment) -> None:
        self._environment = environment

    def get_state(self, state_descriptor: ValueStateDescriptor) -> ValueState[Any]:
        state: ValueState[Any] = self._get(state_descriptor)
        return state

    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        state: ListState[Any] = self._get(state_descriptor)
        return state

    def get_map_state(self, state_descriptor: MapStateDescriptor) -> MapState[Any, Any]:
        state: MapState[Any, Any] = self._get(state_descriptor)
        return state

    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor) -> ReducingState[Any]:
        state: ReducingState[Any] = self._get(state_descriptor)
        return state

    def get_aggregating_state(self, state_descriptor: AggregatingStateDescriptor) -> AggregatingState[Any, Any]:
        state: AggregatingState[Any, Any] = self._get(state_descriptor)
        return state

    def _get(self, descriptor: StateDescriptor) -> Any:
        check_declared(self._environment, descriptor, keyed=True)
        state = self._environment.keyed().state(descriptor)
        self._environment.bindings[id(state)] = (KEYED, descriptor)
        return state


class OperatorStateStore:
    """Operator state by descriptor."""

    def __init__(self, environment: OperatorEnvironment) -> None:
        self._environment = environment

    def get_list_state(self, descriptor: ListStateDescriptor) -> PartitionableListState:
        """A list that is split between subtasks when their number changes."""
        check_declared(self._environment, descriptor)
        handle = self._environment.operator_state.get_list_state(descriptor)
        self._bind(LIST, descriptor, handle)
        return handle

    def get_union_list_state(self, descriptor: ListStateDescriptor) -> PartitionableListState:
        """A list that every subtask gets whole at a restore."""
        check_declared(self._environment, descriptor)
        handle = self._environment.operator_state.get_union_list_state(descriptor)
        self._bind(UNION_LIST, descriptor, handle)
        return handle

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState:
        """A map that is the same on every subtask."""
        check_declared(self._environment, state_descriptor)
        handle = self._environment.operator_state.get_broadcast_state(state_descriptor)
        self._bind(BROADCAST, state_descriptor, handle)
        return handle

    def get_registered_state_names(self) -> set[str]:
        """All lists of the operator, those included that were restored and not yet asked for."""
        return self._environment.operator_state.get_registered_state_names()

    def get_registered_broadcast_state_names(self) -> set[str]:
        return self._environment.operator_state.get_registered_broadcast_state_names()

    def _bind(self, kind: str, descriptor: StateDescriptor, handle: object) -> None:
        self._environment.bindings[id(handle)] = (kind, descriptor)


def bind_again(environment: OperatorEnvironment, kind: str, *handle: Any) -> Any:
    """The handle that a function held, in a process that has just taken the operator up."""
    if kind in (METRIC, ACCUMULATOR):
        return environment.metrics.bind_again(kind, *handle)
    (descriptor,) = handle
    if kind == KEYED:
        return KeyedStateStore(environment)._get(descriptor)
    store = OperatorStateStore(environment)
    if kind == LIST:
        return store.get_list_state(descriptor)
    if kind == UNION_LIST:
        return store.get_union_list_state(descriptor)
    state = store.get_broadcast_state(descriptor)
    return state if kind == BROADCAST else state.read_only(descriptor.get_name())


class RuntimeContext(KeyedStateStore):
    """What ``open()`` is given: keyed state and the facts of the subtask."""

    def get_task_name(self) -> str:
        return self._environment.spec.name

    def get_number_of_parallel_subtasks(self) -> int:
        return self._environment.spec.parallelism

    def get_max_number_of_parallel_subtasks(self) -> int:
        return self._environment.spec.max_parallelism

    def get_index_of_this_subtask(self) -> int:
        return self._environment.subtask

    def get_attempt_number(self) -> int:
        """0 for the first attempt, as in Flink."""
        return self._environment.attempt - 1

    def get_task_name_with_subtasks(self) -> str:
        environment = self._environment
        return f"{environment.spec.name} ({environment.subtask + 1}/{environment.spec.parallelism})"

    def get_job_id(self) -> str:
        return self._environment.job_id

    def get_job_parameter(self, key: str, default_value: str) -> str:
        """A parameter that ``env.get_config().set_global_job_parameters(...)`` has set."""
        return self._environment.parameters.get(key, default_value)

    def get_job_parameters(self) -> dict[str, str]:
        """All of them."""
        return dict(self._environment.parameters)

    def get_distributed_cache(self) -> DistributedCache:
        """What ``env.register_cached_file(...)`` has registered."""
        return DistributedCache(self._environment.cached_files)

    def get_metrics_group(self) -> MetricGroup:
        """Where the metrics of the operator are registered, for each subtask."""
        return self._environment.metrics.group()

    def add_accumulator(self, name: str, accumulator: Accumulator[Any, Any]) -> None:
        """Make an accumulator of this subtask known under ``name``: the job's result has it, with those of all others
        that have this name. Not in PyFlink.
        """
        self._environment.metrics.add_accumulator(name, accumulator)

    def get_accumulator(self, name: str) -> Accumulator[Any, Any] | None:
        """The accumulator that was added in this subtask. Not in PyFlink."""
        return self._environment.metrics.added().get(name)

    def get_operator_state_store(self) -> NoReturn:
        raise self._no_operator_state("get_operator_state_store()")

    def get_union_list_state(self, descriptor: ListStateDescriptor) -> NoReturn:
        raise self._no_operator_state("get_union_list_state()")

    def get_broadcast_state(self, descriptor: MapStateDescriptor) -> NoReturn:
        raise self._no_operator_state("get_broadcast_state()")

    def _no_operator_state(self, asked: str) -> StateAccessError:
        return StateAccessError(
            f"{self._environment.where} called {asked} on its runtime context, which reaches keyed state only. For "
            "operator state implement CheckpointedFunction: initialize_state(context) has "
            "context.get_operator_state_store()."
        )


@dataclass(frozen=True)
class FunctionSnapshotContext:
    """The context of ``snapshot_state``."""

    checkpoint_id: int
    checkpoint_timestamp: int

    def get_checkpoint_id(self) -> int:
        return self.checkpoint_id

    def get_checkpoint_timestamp(self) -> int:
        return self.checkpoint_timestamp


@dataclass(frozen=True)
class StateSnapshotContext(FunctionSnapshotContext):
    """The context of ``snapshot_state`` of operators that write bytes of their own."""

    raw: RawStateOutputs

    def get_raw_keyed_operator_state_output(self) -> KeyedStateCheckpointOutputStream:
        return self.raw.keyed()

    def get_raw_operator_state_output(self) -> OperatorStateCheckpointOutputStream:
        return self.raw.operator()

    def for_function(self) -> FunctionSnapshotContext:
        """What a function sees of it."""
        return FunctionSnapshotContext(self.checkpoint_id, self.checkpoint_timestamp)


class FunctionInitializationContext:
    """The context of ``initialize_state``, which is called before ``open``."""

    def __init__(self, environment: OperatorEnvironment) -> None:
        #: Not for functions.
        self.environment = environment

    def is_restored(self) -> bool:
        """True in a job that continues a snapshot, also for operators that are new in it."""
        return self.environment.state.restored_checkpoint_id is not None

    def has_restored_state(self) -> bool:
        """True where the snapshot has state of this operator. Not in Flink: it tells a source that has read all from
        one that is new.
        """
        return self.environment.state.has_restored_state

    def get_restored_checkpoint_id(self) -> int | None:
        return self.environment.state.restored_checkpoint_id

    def get_operator_state_store(self) -> OperatorStateStore:
        return OperatorStateStore(self.environment)

    def get_keyed_state_store(self) -> KeyedStateStore:
        self.environment.keyed()
        return KeyedStateStore(self.environment)


class StateInitializationContext(FunctionInitializationContext):
    """The context of ``initialize_state`` of operators that write bytes of their own. Streams are open until it
    returns.
    """

    def get_raw_keyed_state_inputs(self) -> Iterable[KeyGroupStatePartitionStreamProvider]:
        """What was written for the key groups that are now this subtask's."""
        self.environment.keyed()
        self.environment.state.raw_keyed_inputs.asked = True
        return self.environment.state.raw_keyed_inputs

    def get_raw_operator_state_inputs(self) -> Iterable[StatePartitionStreamProvider]:
        """The partitions that are now this subtask's."""
        self.environment.state.raw_operator_inputs.asked = True
        return self.environment.state.raw_operator_inputs
