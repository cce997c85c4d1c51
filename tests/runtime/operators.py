"""One operator without a task: its environment, and what it hands on."""

from __future__ import annotations

from typing import Any

import cloudpickle

from holdfast.runtime.batch import Batch
from holdfast.runtime.environment import OperatorEnvironment
from holdfast.runtime.operator import Operator
from holdfast.runtime.plan import OperatorSpec
from holdfast.runtime.state_context import OperatorStateContext
from holdfast.state.handles import ListStateSnapshot
from holdfast.state.operator_state import DefaultOperatorStateBackend, RegisteredStates
from holdfast.types.typeinfo import Types


class Clock:
    """Milliseconds that a test moves."""

    def __init__(self, now: int = 0) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now


class Downstream(Operator):
    """Remembers rows with their times and watermarks, and the watermarks between them."""

    def __init__(self) -> None:
        super().__init__(_spec(Operator, None))
        self.rows: list[tuple[Any, int | None, int | None]] = []
        self.watermarks: list[int] = []

    def process(self, batch: Batch, input_index: int) -> None:
        size = len(batch)
        times, watermarks = batch.timestamps or [None] * size, batch.watermarks or [None] * size
        self.rows += zip(batch.values, times, watermarks, strict=True)

    def process_watermark(self, watermark: int) -> None:
        self.watermarks.append(watermark)


def _spec(factory: type[Operator], body: Any, **changes: Any) -> OperatorSpec:
    row_type = Types.PICKLED_BYTE_ARRAY()
    return OperatorSpec("id", "Timestamps", factory, cloudpickle.dumps(body), 1, 128, row_type, **changes)


def set_up(
    factory: type[Operator],
    body: Any,
    clock: Clock | None = None,
    restored: tuple[ListStateSnapshot, ...] = (),
    **changes: Any,
) -> tuple[Any, Downstream]:
    """An operator whose state is bound, and what listens to it. ``changes`` are those of its spec."""
    spec = _spec(factory, body, **changes)
    operator = factory(spec)
    state = OperatorStateContext(DefaultOperatorStateBackend("Timestamps", RegisteredStates.of(restored)))
    operator.setup(OperatorEnvironment(spec, "job", "job", 0, 1, state, clock=clock or Clock()))
    downstream = Downstream()
    operator.output.add_operator(downstream)
    operator.bind_state()
    return operator, downstream
