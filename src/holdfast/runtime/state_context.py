"""All state of one (operator, subtask) as its operator finds it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holdfast.errors import RestoreError
from holdfast.runtime.timer_service import InternalTimeServiceManager
from holdfast.state.operator_state import DefaultOperatorStateBackend
from holdfast.state.raw_state import RawKeyedInputs, RawOperatorInputs, RawStateInputs

if TYPE_CHECKING:
    from holdfast.state.keyed_backend import KeyedStateBackend


@dataclass(slots=True)
class OperatorStateContext:
    """All state of one operator: ``StreamOperatorStateHandler`` makes it when a process takes the operator up."""

    operator_state: DefaultOperatorStateBackend
    #: None without a ``key_by``, as are the timers.
    keyed_state: KeyedStateBackend | None = None
    timers: InternalTimeServiceManager | None = None
    #: What was restored of raw state; empty again once ``initialize_state`` has returned.
    raw_keyed_inputs: RawKeyedInputs = field(default_factory=RawStateInputs)
    raw_operator_inputs: RawOperatorInputs = field(default_factory=RawStateInputs)
    #: The checkpoint that the job was restored from, also for operators that are new in it.
    restored_checkpoint_id: int | None = None
    #: The restored checkpoint has state of this operator.
    has_restored_state: bool = False

    def initialized(self, where: str) -> None:
        """``initialize_state`` has returned: nothing more can be read of raw state, and what nobody read is lost."""
        self.close_raw_inputs()
        for kind, inputs in (("keyed", self.raw_keyed_inputs), ("operator", self.raw_operator_inputs)):
            if len(inputs) and not inputs.asked:
                raise RestoreError(raw_state_not_asked_for(where, kind))

    def close_raw_inputs(self) -> None:
        self.raw_keyed_inputs.close()
        self.raw_operator_inputs.close()


def raw_state_not_asked_for(where: str, kind: str) -> str:
    """Why an operator that does not ask for its raw state cannot be restored."""
    return (
        f"{where} was restored with raw {kind} state, which the next checkpoint would drop: it does not call "
        f"get_raw_{kind}_state_inputs() in initialize_state. Run the operator that wrote it, or give this one another "
        "uid."
    )
