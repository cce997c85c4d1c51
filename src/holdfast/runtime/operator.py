"""One subtask of one operator.

An operator lives for an attempt. Calls come from its chain, always from one thread:

    initialize_state -> open
    per epoch: process / process_watermark / fire_processing_timers ... -> [end of input: finish]
        -> end_rows -> [checkpoint: prepare_snapshot] -> end_epoch -> [checkpoint: snapshot_state]
    close
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from holdfast.errors import HoldfastError
from holdfast.runtime.batch import Batch
from holdfast.runtime.environment import OperatorEnvironment
from holdfast.runtime.epoch import EpochEnd, SinkHandle
from holdfast.runtime.failures import function_failure
from holdfast.runtime.output import Output, SplittingOutput
from holdfast.runtime.plan import OperatorSpec
from holdfast.runtime.program import load_program

if TYPE_CHECKING:
    from holdfast.runtime.context import StateSnapshotContext

MIN_WATERMARK = -(1 << 63)
MAX_WATERMARK = (1 << 63) - 1


class Operator:
    """The base of all operators: does nothing, and passes watermarks on."""

    #: Whether its function yields rows, among which there may be some for side outputs.
    yields_rows: ClassVar[bool] = False
    #: Whether all rows that it gives are rows that it got, which have the form of their type.
    passes_rows: ClassVar[bool] = False

    def __init__(self, spec: OperatorSpec) -> None:
        self.spec = spec
        self.body: Any = load_program(spec.body, f"The function of operator '{spec.name}'")
        splits = self.yields_rows or bool(spec.side_outputs)
        self.output: Output = SplittingOutput(spec.name) if splits else Output()
        self.rows_in = 0
        self.watermark = MIN_WATERMARK
        self.environment: OperatorEnvironment

    def setup(self, environment: OperatorEnvironment) -> None:
        """Told where it runs, before anything else."""
        self.environment = environment

    def bind_state(self) -> None:
        """State is there: take handles to what is needed. Called whenever a process takes the operator up."""

    def initialize_state(self) -> None:
        """Called once per attempt, right before ``open``, tail to head along the chain."""

    def open(self) -> None:
        """Called once per attempt, before anything reaches the operator."""

    def begin_batch(self, rows: int) -> None:
        """So many rows, timers or the end of the input come next."""

    def process(self, batch: Batch, input_index: int) -> None:
        raise NotImplementedError

    def process_watermark(self, watermark: int) -> None:
        """Event time reached ``watermark``: fire what is due, then pass it on."""
        if watermark > self.watermark:
            self.watermark = watermark
            self.output.emit_watermark(watermark)

    def fire_processing_timers(self, now: int) -> None:
        """Fire processing-time timers that are due at ``now``."""

    def next_processing_timer(self) -> int | None:
        return None

    def end_rows(self) -> None:
        """No more rows come in this epoch: those that waited for others are to be processed."""

    def prepare_snapshot(self, checkpoint_id: int) -> None:
        """The barrier comes next; rows may still be emitted."""

    def snapshot_state(self, context: StateSnapshotContext) -> None:
        """The barrier was sent: write what is held in fields to state."""

    def notify_complete(self, checkpoint_id: int) -> None: ...

    def notify_aborted(self, checkpoint_id: int) -> None: ...

    def finish(self) -> None:
        """End of input: emit what is left."""

    def end_epoch(self, end: EpochEnd) -> list[SinkHandle]:
        """All rows of the epoch are through. Sinks pre-commit here."""
        return []

    def fail_epoch(self) -> None:
        """The task is about to fail. Best effort."""

    def close(self) -> None: ...

    def let_go(self) -> None:
        """This process no longer holds the operator, closed or not: end the threads that belong to it here."""

    def travelling_fields(self) -> dict[str, Any]:
        """What must be the same in the next epoch's process, beside state."""
        return {"watermark": self.watermark}

    def adopt_fields(self, fields: dict[str, Any]) -> None:
        self.watermark = fields["watermark"]

    @property
    def event_time_ended(self) -> bool:
        """The input has come to its end."""
        return self.watermark == MAX_WATERMARK

    @property
    def where(self) -> str:
        return self.environment.where

    def failure(self, error: BaseException, row: Any, key: Any = None) -> HoldfastError:
        """The error to raise when the user's function raised on ``row``. An error of ours is raised here, as it is,
        with what is known of its place."""
        if isinstance(error, HoldfastError):
            error.at(operator_id=self.spec.operator_id)
            if self.where not in str(error):
                error.at(operator=self.where)
                # Other keys are written when there is no more room for them: then this row has nothing to do with it.
                if "key" not in error.place:
                    error.at(row=repr(row), **_key_at(key))
            raise error
        return function_failure(f"{type(error).__name__}: {error}", error).at(
            operator=self.where, operator_id=self.spec.operator_id, row=repr(row), **_key_at(key)
        )


def _key_at(key: Any) -> dict[str, str]:
    return {} if key is None else {"key": f"key {key!r}"}
