"""How a harness runs its operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypedDict

from holdfast.errors import ProgramError
from holdfast.runtime.output_tag import OutputTag
from holdfast.runtime.row_path import RowPath
from holdfast.state.descriptors import MapStateDescriptor
from holdfast.testing.clock import ManualClock
from holdfast.testing.snapshot import HarnessSnapshot


class HarnessOptions(TypedDict, total=False):
    """The keyword arguments of harnesses; what is left out is as in ``Setup``."""

    operation: str | Callable[..., Any]
    input_type: Any
    second_input_type: Any
    output_type: Any
    broadcast_states: Sequence[MapStateDescriptor]
    side_outputs: Sequence[OutputTag]
    event_time: bool
    backend: str
    parallelism: int
    max_parallelism: int
    subtask: int
    clock: ManualClock
    parameters: Mapping[str, str]
    row_path: RowPath
    snapshot: HarnessSnapshot | None


@dataclass(frozen=True)
class Setup:
    """What the harness stands for: one subtask of an operator in a job."""

    #: "map", "flat_map", "filter", "reduce" or "process", for a plain callable; a function object says it by its class.
    #: Or what makes the stream: ``lambda stream, function: stream.window(...).process(function)``, with two streams
    #: where the operator has two.
    operation: str | Callable[..., Any] | None = None
    #: Types of the rows that go in and come out, as in the program; pickled when left out. The second input is that of
    #: a connected stream, or of broadcast elements.
    input_type: Any = None
    second_input_type: Any = None
    output_type: Any = None
    #: What the program gives to ``broadcast()``, for a function on a stream that is connected to a broadcast one.
    broadcast_states: Sequence[MapStateDescriptor] = ()
    #: What ``side_output`` can be asked for.
    side_outputs: Sequence[OutputTag] = ()
    #: False: the stream has no timestamps, and ``ctx.timestamp()`` is None.
    event_time: bool = True
    backend: str = "heap"
    parallelism: int = 1
    max_parallelism: int = 128
    subtask: int = 0
    clock: ManualClock = field(default_factory=ManualClock)
    #: What ``get_job_parameter`` finds.
    parameters: Mapping[str, str] = field(default_factory=dict)
    #: The way that rows take into windows and ``reduce()``, and its limits. All ways give the same.
    row_path: RowPath = field(default_factory=RowPath)
    #: What the subtask starts from, of all subtasks that there were; ``restore`` sets it.
    snapshot: HarnessSnapshot | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.subtask < self.parallelism:
            raise ProgramError(
                f"Subtask {self.subtask} does not exist: parallelism {self.parallelism} has "
                f"0 to {self.parallelism - 1}."
            )

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Setup:
        """``HarnessOptions``, checked."""
        return cls().changed(options)

    def changed(self, options: Mapping[str, Any]) -> Setup:
        """This setup but for some options."""
        known = {f.name for f in fields(self)}
        unknown = sorted(options.keys() - known)
        if unknown:
            raise ProgramError(f"A harness has no option {unknown[0]!r}; it has {', '.join(sorted(known))}.")
        return replace(self, **options)
