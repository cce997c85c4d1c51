"""Broadcast streams: what every subtask of an operator sees whole, and keeps in broadcast state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.coverage.answers import SaysWhatToUse
from holdfast.datastream.functions import (
    BaseBroadcastProcessFunction,
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
)
from holdfast.errors import ProgramError, StateDescriptorError
from holdfast.graph.stream_graph import Connection
from holdfast.runtime.broadcast import BROADCAST_INPUT, BroadcastProcessOperator, keyed_broadcast_process_operator
from holdfast.runtime.partitioners import Broadcast
from holdfast.runtime.plan import OperatorFactory
from holdfast.state.descriptors import MapStateDescriptor

if TYPE_CHECKING:
    from holdfast.datastream.data_stream import DataStream


class BroadcastStream(SaysWhatToUse):
    """What ``broadcast(descriptor, ...)`` gives: a stream to connect others with, by ``connect``."""

    def __init__(self, origin: Connection, descriptors: tuple[MapStateDescriptor, ...]) -> None:
        self.connection = Connection(origin.source, Broadcast(), input_index=BROADCAST_INPUT, tag=origin.tag)
        self.descriptors = _checked(origin.source.name, descriptors)


class BroadcastConnectedStream(SaysWhatToUse):
    """A stream, keyed or not, with a broadcast stream beside it."""

    def __init__(self, stream: DataStream, broadcast: BroadcastStream) -> None:
        self._stream = stream
        self._broadcast = broadcast

    def process(self, func: BaseBroadcastProcessFunction, output_type: Any = None) -> DataStream:
        """``func`` sees the rows of the stream and, before those of an epoch, all elements of the broadcast stream."""
        keyed = self._stream._connection().key_by is not None
        expected = KeyedBroadcastProcessFunction if keyed else BroadcastProcessFunction
        if not isinstance(func, expected):
            stream = "a keyed stream" if keyed else "a stream without keys"
            raise TypeError(
                f"process() on {stream} that is connected to a broadcast stream takes a {expected.__name__}; got "
                f"{type(func).__name__}."
            )
        name = "Keyed Broadcast Process" if keyed else "Broadcast Process"
        factory: OperatorFactory = keyed_broadcast_process_operator if keyed else BroadcastProcessOperator
        result = self._stream._add(name, factory, func, output_type, self._broadcast.connection)
        result._node.broadcast_states = self._broadcast.descriptors
        return result


def _checked(stream: str, descriptors: tuple[Any, ...]) -> tuple[MapStateDescriptor, ...]:
    names = set()
    for descriptor in descriptors:
        if not isinstance(descriptor, MapStateDescriptor):
            raise StateDescriptorError(
                f"broadcast() of '{stream}' was given {descriptor!r}; broadcast state is a map: give a "
                "MapStateDescriptor."
            )
        if descriptor.name in names:
            raise StateDescriptorError(
                f"broadcast() of '{stream}' was given two descriptors of the name '{descriptor.name}'. Names must "
                "differ."
            )
        if descriptor.ttl_config is not None:
            raise ProgramError(
                f"The {descriptor.describe()} has a time to live, which broadcast state cannot have: entries would not "
                "expire at the same moment on every subtask. Remove enable_time_to_live, and remove entries by "
                "broadcast elements."
            )
        names.add(descriptor.name)
    return descriptors
