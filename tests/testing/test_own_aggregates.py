"""Aggregates of a program's own, of fields whose values in Arrow are not those of rows, whatever way rows take."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest

from holdfast.common import Row, TypeInformation, Types
from holdfast.datastream.aggregates import Aggregate, Partial, PartialFunction, Variance
from holdfast.datastream.window import TumblingEventTimeWindows
from holdfast.errors import ProgramError
from holdfast.runtime.row_path import RowPath, RowsBy
from holdfast.testing import KeyedOperatorHarness
from holdfast.types.instant import Instant

WAYS: dict[str, RowPath] = {
    "combined": RowPath(RowsBy.COLUMN, least_rows=1, least_timers=2),
    "by column": RowPath(RowsBy.COLUMN, least_rows=1, least_timers=2, combine=False),
    "one by one": RowPath(RowsBy.ONE),
}


def add(kept: Any, value: Any) -> Any:
    if value is None or kept is None:
        return kept if value is None else value
    return kept + value


def count_if_true(kept: int | None, value: Any) -> int | None:
    return kept if value is None else (kept or 0) + (1 if value else 0)


def least(kept: Any, value: Any) -> Any:
    if value is None or kept is None:
        return kept if value is None else value
    return min(kept, value)


class Own(Aggregate):
    def __init__(self, field: str, function: PartialFunction, type_info: TypeInformation) -> None:
        super().__init__(field)
        object.__setattr__(self, "of", (Partial(function, field, type_info),))

    def partials(self, fields: dict[str, TypeInformation]) -> tuple[Partial, ...]:
        return self.of


TRUE_ONES = PartialFunction("true_ones", count_if_true, add, order_free=True)
SUM = PartialFunction("own_sum", add, add, order_free=True)
LEAST = PartialFunction("own_least", least, least, order_free=True)

#: What is aggregated how, its type, the values of a key, and the result.
CASES: dict[str, tuple[PartialFunction, Any, Any, list[Any], Any]] = {
    "zeros of BIG_INT": (TRUE_ONES, Types.BIG_INT(), Types.LONG(), [0, 0, 1 << 70], 1),
    "zeros of BIG_DEC": (TRUE_ONES, Types.BIG_DEC(), Types.LONG(), [Decimal(0), Decimal("0.5")], 1),
    "a sum of BIG_INT": (SUM, Types.BIG_INT(), Types.BIG_INT(), [1 << 70, None, 1], (1 << 70) + 1),
    "a sum of LONG as BIG_INT": (SUM, Types.LONG(), Types.BIG_INT(), [1 << 62, 1 << 62, 1 << 62], 3 << 62),
    "the first INSTANT": (LEAST, Types.INSTANT(), Types.INSTANT(), [Instant(5, 1), Instant(3, 7)], Instant(3, 7)),
}


def results(field_type: Any, values: list[Any], path: RowPath, keys: int = 1, **aggregates: Aggregate) -> list[Any]:
    row_type = Types.ROW_NAMED(["key", "value"], [Types.STRING(), field_type])
    harness = KeyedOperatorHarness(
        function=None,
        key_selector="key",
        operation=lambda s, _: s.window(TumblingEventTimeWindows.of(10)).aggregate(**aggregates),
        input_type=row_type,
        event_time=True,
        row_path=path,
    )
    with harness:
        rows = [Row(f"key-{number}", value) for number in range(keys) for value in values]
        harness.push_all(rows, [1] * len(rows)).end_input()
        return [tuple(row)[3:] for row in harness.output()]


@pytest.mark.parametrize("path", WAYS.values(), ids=WAYS.keys())
@pytest.mark.parametrize("case", CASES)
def test_they_see_the_values_of_rows(case: str, path: RowPath) -> None:
    function, field_type, kept_type, values, expected = CASES[case]
    found = results(field_type, values, path, keys=60, own=Own("value", function, kept_type))
    assert found == [(expected,)] * 60


def test_a_field_without_a_type_is_refused() -> None:
    with pytest.raises(ProgramError, match=r"own_sum\(value\): the field has no declared type.*Declare its type"):
        results(Types.PICKLED_BYTE_ARRAY(), [1], RowPath(), own=Own("value", SUM, Types.LONG()))


@pytest.mark.parametrize("value", [math.nan, math.inf, 3.0])
def test_the_variance_of_one_value(value: float) -> None:
    (found,) = results(Types.DOUBLE(), [value], RowPath(), spread=Variance("value", population=True))
    expected = value - value
    assert found == (expected,) or (found[0] != found[0] and expected != expected)
