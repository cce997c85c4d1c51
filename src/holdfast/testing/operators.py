"""The harnesses that users make: of functions on plain streams, and on keyed ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, Unpack

from holdfast.errors import ProgramError
from holdfast.runtime.batch import Batch
from holdfast.runtime.keyed import TimedOperator
from holdfast.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
)
from holdfast.state.keyed_backend import KeyedStateBackend
from holdfast.state.timers import TimeDomain
from holdfast.testing.harness import Harness
from holdfast.testing.options import HarnessOptions, Setup
from holdfast.testing.program import KeyBy
from holdfast.testing.snapshot import HarnessSnapshot
from holdfast.types.arrow import row_writer

Snapshots = HarnessSnapshot | Sequence[HarnessSnapshot]


def _restored(snapshots: Snapshots, options: HarnessOptions) -> tuple[HarnessSnapshot, Setup]:
    """What to start from, with its parallelism unless another one is asked for."""
    merged = HarnessSnapshot.merged([snapshots] if isinstance(snapshots, HarnessSnapshot) else snapshots)
    record = merged.record
    layout: HarnessOptions = {"parallelism": record.parallelism, "max_parallelism": record.max_parallelism}
    return merged, Setup.of({**layout, **options})


def _all_subtasks(options: HarnessOptions, parallelism: int) -> list[HarnessOptions]:
    return [{**options, "parallelism": parallelism, "subtask": subtask} for subtask in range(parallelism)]


class OperatorHarness(Harness):
    """Map, flat map, filter and process functions on a stream without keys, and ``CheckpointedFunction`` state.

    Options are those of ``HarnessOptions``.
    """

    def __init__(self, function: Any, **options: Unpack[HarnessOptions]) -> None:
        super().__init__(function, None, Setup.of(options), None)

    @classmethod
    def restore(cls, snapshots: Snapshots, function: Any, **options: Unpack[HarnessOptions]) -> Self:
        """A subtask that starts from a snapshot: of itself, or one of every subtask where parallelism is above 1."""
        harness = cls.__new__(cls)
        merged, setup = _restored(snapshots, options)
        Harness.__init__(harness, function, None, setup, merged)
        return harness

    @classmethod
    def rescale(
        cls, snapshots: Snapshots, parallelism: int, /, function: Any, **options: Unpack[HarnessOptions]
    ) -> list[Self]:
        """All subtasks of a new parallelism, each starting from its share of the snapshots."""
        return [cls.restore(snapshots, function, **each) for each in _all_subtasks(options, parallelism)]


class KeyedOperatorHarness(Harness):
    """Functions behind a ``key_by``: map, flat map, filter, reduce and keyed process functions.

    ``key_selector`` and ``key_type`` are those of ``DataStream.key_by``. Options are those of ``HarnessOptions``.
    """

    def __init__(
        self, function: Any, key_selector: Any, key_type: Any = None, **options: Unpack[HarnessOptions]
    ) -> None:
        super().__init__(function, _key_by(key_selector, key_type), Setup.of(options), None)

    @classmethod
    def restore(
        cls,
        snapshots: Snapshots,
        function: Any,
        key_selector: Any,
        key_type: Any = None,
        **options: Unpack[HarnessOptions],
    ) -> Self:
        """A subtask that starts from a snapshot: of itself, or one of every subtask where parallelism is above 1."""
        harness = cls.__new__(cls)
        merged, setup = _restored(snapshots, options)
        Harness.__init__(harness, function, _key_by(key_selector, key_type), setup, merged)
        return harness

    @classmethod
    def rescale(
        cls,
        snapshots: Snapshots,
        parallelism: int,
        /,
        function: Any,
        key_selector: Any,
        key_type: Any = None,
        **options: Unpack[HarnessOptions],
    ) -> list[Self]:
        """All subtasks of a new parallelism, each starting from its share of the snapshots."""
        return [
            cls.restore(snapshots, function, key_selector, key_type, **each)
            for each in _all_subtasks(options, parallelism)
        ]

    def owns(self, value: Any) -> bool:
        """Whether this subtask is the one that a row goes to."""
        edge = self._inputs[0].edge
        bound = edge.partitioner.bind(0, edge.target_parallelism, "the harness")
        targets = bound.route(Batch([value]), row_writer(edge.type_info)([value])).targets
        return targets is not None and int(targets[0]) == self._setup.subtask

    def state(self, descriptor: StateDescriptor, key: Any) -> Any:
        """The state of a key: a value or None, a list, or a dict, as the descriptor says. Later changes do not show.
        With a time to live it is a read like one of the function's.
        """
        backend = self._backend()
        backend.begin_batch()
        context, codec = backend.context, backend.scope.key_codec
        before = context.key, context.identity
        try:
            normal = codec.normalise(key)
            context.key, context.identity = normal, codec.identity(normal)
            return _content(descriptor, backend.state(descriptor))
        finally:
            context.key, context.identity = before

    def num_event_time_timers(self) -> int:
        """Timers of all keys that wait for the watermark."""
        return self._count_timers(TimeDomain.EVENT_TIME)

    def num_processing_time_timers(self) -> int:
        """Timers of all keys that wait for the clock."""
        return self._count_timers(TimeDomain.PROCESSING_TIME)

    def _count_timers(self, domain: TimeDomain) -> int:
        head = self._head()
        if not isinstance(head, TimedOperator):
            raise ProgramError(f"{head.where} has no timers: only a KeyedProcessFunction and windows set them.")
        return head.timers(domain).count()

    def _backend(self) -> KeyedStateBackend:
        return self._head().environment.keyed()


def _key_by(key_selector: Any, key_type: Any) -> KeyBy:
    return lambda stream: stream.key_by(key_selector, key_type)


def _content(descriptor: StateDescriptor, state: Any) -> Any:
    if isinstance(descriptor, ListStateDescriptor):
        return list(state.get() or ())
    if isinstance(descriptor, MapStateDescriptor):
        return dict(state.items())
    if isinstance(descriptor, (ReducingStateDescriptor, AggregatingStateDescriptor)):
        return state.get()
    return state.value()
