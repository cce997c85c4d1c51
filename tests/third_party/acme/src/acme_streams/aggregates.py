"""How far apart values are: as a function of rows, and as a known aggregate of a field."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address
from typing import Any

from holdfast.common import TypeInformation, Types
from holdfast.datastream import AggregateFunction
from holdfast.datastream.aggregates import Aggregate, Partial, PartialFunction

#: Sensor, value and time.
Reading = tuple[IPv4Address, int, int]
#: The sensor, the least and the greatest value.
Extremes = tuple[IPv4Address | None, int, int]


class Spread(AggregateFunction):
    def create_accumulator(self) -> Extremes:
        return None, 1 << 62, -(1 << 62)

    def add(self, value: Reading, accumulator: Extremes) -> Extremes:
        sensor, reading, _ = value
        return sensor, min(accumulator[1], reading), max(accumulator[2], reading)

    def get_result(self, accumulator: Extremes) -> tuple[IPv4Address | None, int]:
        return accumulator[0], accumulator[2] - accumulator[1]

    def merge(self, acc_a: Extremes, acc_b: Extremes) -> Extremes:
        return acc_a[0] or acc_b[0], min(acc_a[1], acc_b[1]), max(acc_a[2], acc_b[2])


Pair = tuple[int, int]


def widen(kept: Pair | None, value: int | None) -> Pair | None:
    """The least and the greatest value: what was kept, None for nothing, and a value. Null is no value."""
    return kept if value is None else merge(kept, (value, value))


def merge(kept: Pair | None, other: Pair | None) -> Pair | None:
    if kept is None or other is None:
        return kept if other is None else other
    return min(kept[0], other[0]), max(kept[1], other[1])


RANGE = PartialFunction("acme.range", step=widen, merge=merge, order_free=True)


class Range(Aggregate):
    """How far apart the values of a field of integers are, for ``aggregate(range=Range("field"))``."""

    def partials(self, fields: dict[str, TypeInformation]) -> tuple[Partial, ...]:
        number = self.number(fields)
        return (Partial(RANGE, self.field, Types.TUPLE([number, number])),)

    def value(self, kept: Sequence[Any]) -> int | None:
        (extremes,) = kept
        return None if extremes is None else extremes[1] - extremes[0]

    def result_type(self, fields: dict[str, TypeInformation]) -> TypeInformation:
        return self.number(fields)
