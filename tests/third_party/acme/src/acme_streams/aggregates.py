"""An aggregate: how far apart the values of a window are."""

from __future__ import annotations

from holdfast.datastream import AggregateFunction

Reading = tuple[str, int]
#: The name, the least and the greatest value.
Extremes = tuple[str, int, int]


class Spread(AggregateFunction):
    def create_accumulator(self) -> Extremes:
        return "", 1 << 62, -(1 << 62)

    def add(self, value: Reading, accumulator: Extremes) -> Extremes:
        name, reading = value
        return name, min(accumulator[1], reading), max(accumulator[2], reading)

    def get_result(self, accumulator: Extremes) -> Reading:
        return accumulator[0], accumulator[2] - accumulator[1]

    def merge(self, acc_a: Extremes, acc_b: Extremes) -> Extremes:
        return acc_a[0] or acc_b[0], min(acc_a[1], acc_b[1]), max(acc_a[2], acc_b[2])
