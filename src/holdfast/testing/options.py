"""How a harness runs its operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypedDict

from holdfast.errors import ProgramError
from holdfast.runtime.output_tag import OutputTag
from holdfast.state.descriptors import MapStateDescriptor
from holdfast.testing.clock import ManualClock


class HarnessOptions(TypedDict, total=False):
    """The keyword arguments of harnesses; what is left out is as in ``Setup``."""

    operation: str | Callable[[Any, Any], Any]
    input_type: Any
    output_type: Any
    broadcast_states: Sequence[MapStateDescriptor]
    broadcast_type: Any
    side_outputs: Sequence[OutputTag]
    event_time: bool
    backend: str
    parallelism: int
    max_parallelism: int
    subtask: int
    clock: ManualClock
    parameters: Mapping[str, str]


@dataclass(frozen=True)
class Setup:
    """What the harness stands for: one subtask of an operator in a job."""

    #: "map", "flat_map", "filter", "reduce" or "process", for a plain callable; a function object says it by its class.
    #: Or what makes the stream: ``lambda stream, function: stream.window(...).process(function)``.
    operation: str | Callable[[Any, Any], Any] | None = None
    #: Types of the rows that go in and come out, as in the program; pickled when left out.
    input_type: Any = None
    output_type: Any = None
    #: What the program gives to ``broadcast()``, for a function on a stream that is connected to a broadcast one; and
    #: the type of the elements of that one.
    broadcast_states: Sequence[MapStateDescriptor] = ()
    broadcast_type: Any = None
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

    @classmethod
    def of(cls, options: HarnessOptions) -> Setup:
        known = {f.name for f in fields(cls)}
        unknown = sorted(options.keys() - known)
        if unknown:
            raise ProgramError(f"A harness has no option {unknown[0]!r}; it has {', '.join(sorted(known))}.")
        setup = cls(**options)
        if not 0 <= setup.subtask < setup.parallelism:
            raise ProgramError(
                f"Subtask {setup.subtask} does not exist: parallelism {setup.parallelism} has "
                f"0 to {setup.parallelism - 1}."
            )
        return setup
