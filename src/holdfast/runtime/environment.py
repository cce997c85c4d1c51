"""What an operator's subtask finds around it: its place in the job, its state, its clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from holdfast.errors import StateAccessError
from holdfast.runtime.metric_registry import DEFAULT_LIMIT, MetricRegistry
from holdfast.runtime.state_context import OperatorStateContext
from holdfast.types.clock import wall_clock

if TYPE_CHECKING:
    from holdfast.runtime.plan import OperatorSpec
    from holdfast.state.keyed_backend import KeyedStateBackend
    from holdfast.state.operator_state import DefaultOperatorStateBackend


@dataclass(slots=True)
class OperatorEnvironment:
    """One object per (operator, subtask) and attempt, shared by the operator and its function's contexts."""

    spec: OperatorSpec
    job_id: str
    job_name: str
    subtask: int
    attempt: int
    state: OperatorStateContext
    clock: Callable[[], int] = wall_clock
    parameters: Mapping[str, str] = field(default_factory=dict)
    #: Files of the program on this host, by name.
    cached_files: Mapping[str, str] = field(default_factory=dict)
    #: The epoch that runs, and the nonce of its execution: names of sink transactions.
    epoch: int = 0
    nonce: str = ""
    #: By the identity of a state handle that a function was given: how to bind it anew in another process.
    bindings: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    metric_limit: int = DEFAULT_LIMIT
    metrics: MetricRegistry = field(init=False)

    def __post_init__(self) -> None:
        self.metrics = MetricRegistry(f"operator '{self.spec.name}'", self.bindings, self.metric_limit)

    def __reduce__(self) -> NoReturn:
        # A field that reaches into the running task (a timer service, a context) stays behind: its copy would be dead.
        raise TypeError(f"what belongs to the running task of {self.where} cannot be pickled")

    @property
    def where(self) -> str:
        """How errors name the subtask."""
        return self.spec.describe(self.subtask)

    @property
    def operator_state(self) -> DefaultOperatorStateBackend:
        return self.state.operator_state

    def keyed(self) -> KeyedStateBackend:
        if self.state.keyed_state is None:
            raise StateAccessError(
                f"{self.where}: this state is only accessible by functions on a keyed stream. "
                "Put key_by(...) before the function, or keep the state per subtask through CheckpointedFunction."
            )
        return self.state.keyed_state
