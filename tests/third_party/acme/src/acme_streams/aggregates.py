"""An aggregate: how far apart the values of a window are."""

from __future__ import annotations

from holdfast.datastream import AggregateFunction

#: Name, value and time.
Reading = tuple[str, int, int]
#: The name, the least and the greatest value.
Extremes = tuple[str, int, int]


class Spread(AggregateFunction):
    def create_accumulator(self) -> Extremes:
        return "", 1 << 62, -(1 << 62)

    def add(self, value: Reading, accumulator: Extremes) -> Extremes:
        name, reading, _ = value
        return name, min(accumulator[1], reading), max(accumulator[2], reading)

    def get_result(self, accumulator: Extremes) -> tuple[str, int]:
        return accumulator[0], accumulator[2] - accumulator[1]

    def merge(self, acc_a: Extremes, acc_b: Extremes) -> Extremes:
        return acc_a[0] or acc_b[0], min(acc_a[1], acc_b[1]), max(acc_a[2], acc_b[2])
