"""What user functions are given: PyFlink's contexts, and Flink's for checkpointed functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.errors import StateAccessError
from holdfast.runtime.environment import OperatorEnvironment

if TYPE_CHECKING:
    from holdfast.state.descriptors import (
        AggregatingStateDescriptor,
        ListStateDescriptor,
        MapStateDescriptor,
        ReducingStateDescriptor,
        StateDescriptor,
        ValueStateDescriptor,
    )
    from holdfast.state.operator_state import DefaultOperatorStateBackend
    from holdfast.state.states import AggregatingState, ListState, MapState, ReducingState, ValueState


class KeyedStateStore:
    """Keyed state by descriptor."""

    def __init__(self, environment: OperatorEnvironment) -> None:
        self._environment = environment

    def get_state(self, state_descriptor: ValueStateDescriptor) -> ValueState:
        return self._get(state_descriptor)

    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState:
        return self._get(state_descriptor)

    def get_map_state(self, state_descriptor: MapStateDescriptor) -> MapState:
        return self._get(state_descriptor)

    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor) -> ReducingState:
        return self._get(state_descriptor)

    def get_aggregating_state(self, state_descriptor: AggregatingStateDescriptor) -> AggregatingState:
        return self._get(state_descriptor)

    def _get(self, descriptor: StateDescriptor) -> Any:
        return self._environment.keyed().state(descriptor)


class RuntimeContext(KeyedStateStore):
    """Given to ``open()``. Reaches keyed state and the facts of the subtask."""

    def get_task_name(self) -> str:
        return self._environment.spec.name

    def get_number_of_parallel_subtasks(self) -> int:
        return self._environment.spec.parallelism

    def get_max_number_of_parallel_subtasks(self) -> int:
        return self._environment.spec.max_parallelism

    def get_index_of_this_subtask(self) -> int:
        return self._environment.subtask

    def get_attempt_number(self) -> int:
        return self._environment.attempt

    def get_task_name_with_subtasks(self) -> str:
        environment = self._environment
        return f"{environment.spec.name} ({environment.subtask + 1}/{environment.spec.parallelism})"

    def get_job_id(self) -> str:
        return self._environment.job_id

    def get_job_parameter(self, key: str, default_value: str) -> str:
        return self._environment.parameters.get(key, default_value)

    def get_operator_state_store(self) -> DefaultOperatorStateBackend:
        raise StateAccessError(
            f"{self._environment.spec.describe(self._environment.subtask)}: a runtime context reaches keyed state only. "
            "For operator state implement CheckpointedFunction and use initialize_state(context)."
        )


@dataclass(frozen=True, slots=True)
class FunctionSnapshotContext:
    """Given to ``snapshot_state``."""

    checkpoint_id: int
    checkpoint_timestamp: int

    def get_checkpoint_id(self) -> int:
        return self.checkpoint_id

    def get_checkpoint_timestamp(self) -> int:
        return self.checkpoint_timestamp


class FunctionInitializationContext:
    """Given to ``initialize_state``, before ``open``."""

    def __init__(self, environment: OperatorEnvironment) -> None:
        self._environment = environment

    def is_restored(self) -> bool:
        return self._environment.restored_checkpoint_id is not None

    def get_restored_checkpoint_id(self) -> int | None:
        return self._environment.restored_checkpoint_id

    def get_operator_state_store(self) -> DefaultOperatorStateBackend:
        return self._environment.operator_state

    def get_keyed_state_store(self) -> KeyedStateStore:
        self._environment.keyed()
        return KeyedStateStore(self._environment)
