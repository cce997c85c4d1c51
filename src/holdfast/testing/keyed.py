"""State and timers of keys, as harnesses show them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

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
from holdfast.state.keygroups import key_group
from holdfast.state.timers import TimeDomain
from holdfast.testing.assertions import check_content
from holdfast.testing.harness import Harness
from holdfast.types.arrow import row_writer

_ALL_KEYS = object()


class KeyedView(Harness):
    """An operator behind ``key_by``. Reading state with a time to live is a read like one of the function's."""

    def owns(self, value: Any, input_index: int = 0) -> bool:
        """Whether this subtask is the one that a row of an input goes to."""
        edge = self._epochs.inputs[input_index].edge
        bound = edge.partitioner.bind(0, edge.target_parallelism, "the harness")
        targets = bound.route(Batch([value]), row_writer(edge.given_type)([value])).targets
        return targets is not None and int(targets[0]) == self._setup.subtask

    def owns_key(self, key: Any) -> bool:
        """Whether this subtask is the one that has the state of a key."""
        scope = self._backend().scope
        codec = scope.key_codec
        return key_group(codec.hash(codec.normalise(key)), scope.max_parallelism) in scope.key_groups

    def state(self, descriptor: StateDescriptor, key: Any) -> Any:
        """The state of a key: a value or None, a list, or a dict, as the descriptor says. Later changes do not show."""
        return self._of_key(key, lambda: content_of(descriptor, self._backend().state(descriptor)))

    def states(self, descriptor: StateDescriptor) -> dict[Any, Any]:
        """The state of every key of this subtask that has it."""
        found: dict[Any, Any] = {}
        backend = self._backend()
        backend.begin_batch()
        backend.apply_to_all_keys(
            descriptor, lambda key, state: found.__setitem__(key, content_of(descriptor, state))
        )
        return found

    def assert_state(self, descriptor: StateDescriptor, expected: Any, key: Any = _ALL_KEYS) -> Self:
        """AssertionError, with both sides, unless the state is as expected: that of one ``key``, or, without it, those
        of all keys of this subtask that have the state, as a dict.
        """
        what = self._of(descriptor.get_name())
        if key is not _ALL_KEYS:
            check_content(f"{what}, key {key!r},", expected, self.state(descriptor, key))
            return self
        if not isinstance(expected, Mapping):
            raise ProgramError(
                f"assert_state() of all keys takes a dict of their states; got {expected!r}. Give key=... for one key."
            )
        check_content(what, dict(expected), self.states(descriptor))
        return self

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

    def _of_key(self, key: Any, read: Callable[[], Any]) -> Any:
        """What ``read`` gives while a key is the current one."""
        backend = self._backend()
        backend.begin_batch()
        context, codec = backend.context, backend.scope.key_codec
        before = context.key, context.identity
        try:
            normal = codec.normalise(key)
            context.key, context.identity = normal, codec.identity(normal)
            return read()
        finally:
            context.key, context.identity = before


def content_of(descriptor: StateDescriptor, state: Any) -> Any:
    """All that a state of the current key holds."""
    if isinstance(descriptor, ListStateDescriptor):
        return list(state.get() or ())
    if isinstance(descriptor, MapStateDescriptor):
        return dict(state.items())
    if isinstance(descriptor, (ReducingStateDescriptor, AggregatingStateDescriptor)):
        return state.get()
    return state.value()
