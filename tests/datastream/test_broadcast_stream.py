"""Broadcast streams as programs write them: what becomes of them, and what is refused before anything runs."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.common import Configuration, Time, Types
from holdfast.datastream import (
    BroadcastProcessFunction,
    BroadcastStream,
    DataStream,
    KeyedBroadcastProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
    StreamExecutionEnvironment,
)
from holdfast.datastream.state import ListStateDescriptor, MapStateDescriptor, StateTtlConfig, ValueStateDescriptor
from holdfast.errors import ProgramError, StateDescriptorError
from holdfast.runtime.partitioners import Broadcast

RULES = MapStateDescriptor("rules", Types.STRING(), Types.LONG())
OTHERS = MapStateDescriptor("others", Types.LONG(), Types.LONG())


class Plain(BroadcastProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> None: ...

    def process_broadcast_element(self, value: Any, ctx: Any) -> None: ...


class Keyed(KeyedBroadcastProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> None: ...

    def process_broadcast_element(self, value: Any, ctx: Any) -> None: ...


@pytest.fixture
def streams() -> tuple[DataStream, DataStream]:
    env = StreamExecutionEnvironment(Configuration())
    return env.from_collection([1], Types.LONG()), env.from_collection(["a"], Types.STRING())


def test_the_two_inputs_and_the_states_of_the_operator(streams: tuple[DataStream, DataStream]) -> None:
    rows, rules = streams
    result = rows.key_by(lambda n: n).connect(rules.broadcast(RULES, OTHERS)).process(Keyed(), Types.LONG())
    node = result._node
    assert result.get_type() == Types.LONG()
    assert [connection.input_index for connection in node.inputs] == [0, 1]
    assert node.keyed and isinstance(node.inputs[1].partitioner, Broadcast)
    assert node.broadcast_states == (RULES, OTHERS)
    assert not rows.connect(rules.broadcast(RULES)).process(Plain())._node.keyed


def test_without_descriptors_it_is_a_partitioning(streams: tuple[DataStream, DataStream]) -> None:
    _, rules = streams
    assert isinstance(rules.broadcast(), DataStream)
    assert isinstance(rules.broadcast(broadcast_state_descriptor=RULES), BroadcastStream)


@pytest.mark.parametrize(
    "descriptor", [ValueStateDescriptor("v", Types.LONG()), ListStateDescriptor("l", Types.LONG()), "rules", Types]
)
def test_only_maps_can_be_broadcast(streams: tuple[DataStream, DataStream], descriptor: Any) -> None:
    for given in ((descriptor,), (RULES, descriptor)):
        with pytest.raises(StateDescriptorError, match="broadcast state is a map: give a MapStateDescriptor"):
            streams[1].broadcast(*given)


def test_names_differ(streams: tuple[DataStream, DataStream]) -> None:
    with pytest.raises(StateDescriptorError, match="two descriptors of the name 'rules'"):
        streams[1].broadcast(RULES, MapStateDescriptor("rules", Types.LONG(), Types.LONG()))


def test_broadcast_state_does_not_expire(streams: tuple[DataStream, DataStream]) -> None:
    expiring = MapStateDescriptor("expiring", Types.STRING(), Types.LONG())
    expiring.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
    with pytest.raises(ProgramError, match=r"'expiring'.*time to live, which broadcast state cannot have"):
        streams[1].broadcast(expiring)


def test_functions_of_the_wrong_kind(streams: tuple[DataStream, DataStream]) -> None:
    rows, rules = streams
    keyed, broadcast = rows.key_by(lambda n: n), rules.broadcast(RULES)
    for function in (Plain(), ProcessFunction, object()):
        with pytest.raises(TypeError, match=r"a keyed stream that .* takes a KeyedBroadcastProcessFunction; got"):
            keyed.connect(broadcast).process(function)
    for function in (Keyed(), object()):
        with pytest.raises(TypeError, match=r"a stream without keys that .* takes a BroadcastProcessFunction; got"):
            rows.connect(broadcast).process(function)
    for function in (Plain(), Keyed()):
        with pytest.raises(TypeError, match=r"needs a second stream: put connect\(...\) before process"):
            rows.process(function)
        with pytest.raises(TypeError, match=KeyedProcessFunction.__name__):
            keyed.process(function)


def test_what_cannot_be_connected(streams: tuple[DataStream, DataStream]) -> None:
    rows = streams[0]
    with pytest.raises(ProgramError, match=r"or a broadcast stream, stream.broadcast\(descriptor\); got None"):
        rows.connect(None)
    with pytest.raises(ProgramError, match="Cannot override partitioning"):
        rows.key_by(lambda n: n).broadcast(RULES)
