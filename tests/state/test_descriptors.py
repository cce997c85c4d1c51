from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from holdfast.common import Time
from holdfast.errors import ProgramError
from holdfast.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from holdfast.state.ttl_config import StateTtlConfig
from holdfast.types.typeinfo import Types


class Sum:
    def reduce(self, left: int, right: int) -> int:
        return left + right


class Average:
    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: int, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator: tuple[int, int]) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
        return left[0] + right[0], left[1] + right[1]


@dataclass
class Event:
    name: str


ALL: list[tuple[StateDescriptor, str]] = [
    (ValueStateDescriptor("s", Types.LONG()), "value"),
    (ListStateDescriptor("s", Types.LONG()), "list"),
    (MapStateDescriptor("s", Types.STRING(), Types.LONG()), "map"),
    (ReducingStateDescriptor("s", Sum(), Types.LONG()), "reducing"),
    (AggregatingStateDescriptor("s", Average(), Types.LONG()), "aggregating"),
]


@pytest.mark.parametrize(("descriptor", "kind"), ALL, ids=lambda case: str(case))
def test_kind_name_and_serializers(descriptor: StateDescriptor, kind: str) -> None:
    assert descriptor.kind == kind
    assert descriptor.get_name() == "s"
    serializers = descriptor.serializers()
    assert list(serializers) == (["map_key", "value"] if kind == "map" else ["value"])
    assert serializers["value"].type_info == Types.LONG()
    assert serializers["value"].decode(serializers["value"].encode(5)) == 5


def test_equal_means_kind_name_and_types() -> None:
    descriptors = [descriptor for descriptor, _ in ALL]
    for position, one in enumerate(descriptors):
        assert [one == other for other in descriptors] == [index == position for index in range(len(descriptors))]
    assert ValueStateDescriptor("s", Types.LONG()) == ValueStateDescriptor("s", "bigint")
    assert hash(ValueStateDescriptor("s", Types.LONG())) == hash(ValueStateDescriptor("s", int))
    assert ValueStateDescriptor("s", Types.LONG()) != ValueStateDescriptor("t", Types.LONG())
    assert ValueStateDescriptor("s", Types.LONG()) != ValueStateDescriptor("s", Types.INT())
    assert MapStateDescriptor("s", int, str) != MapStateDescriptor("s", str, int)
    assert ReducingStateDescriptor("s", max, int) == ReducingStateDescriptor("s", min, int)
    assert ValueStateDescriptor("s", int) != "s"


@pytest.mark.parametrize(
    ("type_like", "described"),
    [
        (Types.TUPLE([Types.LONG(), Types.LONG()]), "TUPLE<LONG, LONG>"),
        ("a INT, b STRING", "ROW<a: INT, b: STRING>"),
        (list[int], "LIST<LONG>"),
        (None, "PICKLED_BYTE_ARRAY"),
    ],
)
def test_types_are_whatever_resolves(type_like: Any, described: str) -> None:
    assert ValueStateDescriptor("s", type_like).describe() == f"value state 's' of {described}"


def test_dataclasses_are_types() -> None:
    serializer = ListStateDescriptor("s", Event).serializers()["value"]
    assert serializer.decode(serializer.encode(Event("a"))) == Event("a")


def test_time_to_live_is_kept_as_given_and_is_not_part_of_the_type() -> None:
    config = StateTtlConfig.new_builder(Time.hours(1)).build()
    descriptor = ValueStateDescriptor("s", int)
    assert descriptor.ttl_config is None
    descriptor.enable_time_to_live(config)
    assert descriptor.ttl_config is config
    assert descriptor == ValueStateDescriptor("s", int)
    never = StateTtlConfig.new_builder(Time.hours(1)).set_update_type(StateTtlConfig.UpdateType.Disabled).build()
    descriptor.enable_time_to_live(never)
    assert descriptor.ttl_config is None


def test_a_time_to_live_is_a_config() -> None:
    with pytest.raises(ProgramError, match=r"value state 's' of LONG was given 3600; expected a StateTtlConfig"):
        ValueStateDescriptor("s", int).enable_time_to_live(3600)  # type: ignore[arg-type]  # what is refused


@pytest.mark.parametrize("function", [Sum(), lambda left, right: left + right])
def test_reduce_functions_are_objects_or_callables(function: Any) -> None:
    descriptor = ReducingStateDescriptor("s", function, int)
    assert descriptor.reduce(2, 3) == 5
    assert descriptor.get_reduce_function() is function


def test_functions_that_cannot_work_are_refused_with_the_name_of_the_state() -> None:
    with pytest.raises(ProgramError, match="Reducing state 'total'"):
        ReducingStateDescriptor("total", 5, int)
    with pytest.raises(
        ProgramError, match=r"Aggregating state 'mean'.* has no create_accumulator, add, get_result, merge"
    ):
        AggregatingStateDescriptor("mean", Sum(), int)


@pytest.mark.parametrize("name", ["", None, 5])
def test_a_state_needs_a_name(name: Any) -> None:
    with pytest.raises(ProgramError, match="needs a name"):
        ValueStateDescriptor(name, int)
