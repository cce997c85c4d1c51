"""Count, sum, minimum and maximum of the values of each key, after every row."""

from __future__ import annotations

from benchmarks.jobs.holdfast.inputs import Inputs
from holdfast.common import Row, Types
from holdfast.datastream import DataStream

TOTALS = Types.TUPLE([Types.LONG()] * 5)
Totals = tuple[int, int, int, int, int]


def first(event: Row) -> Totals:
    key, value = event
    return key, 1, value, value, value


def add(one: Totals, other: Totals) -> Totals:
    return one[0], one[1] + other[1], one[2] + other[2], min(one[3], other[3]), max(one[4], other[4])


def key_of(totals: Totals) -> int:
    return totals[0]


def totals(inputs: Inputs) -> DataStream:
    return inputs.table("events").map(first, TOTALS).key_by(key_of, Types.LONG()).reduce(add)
