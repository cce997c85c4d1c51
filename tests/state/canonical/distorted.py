"""Values that are almost of a type: what functions give that declare one thing and yield another."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
from hypothesis import strategies as st

from holdfast.types.instant import Instant
from holdfast.types.row import Row, RowKind


class Text(str):
    __slots__ = ()


class Moment(dt.datetime):
    __slots__ = ()


@st.composite
def distorted(draw: st.DrawFn, values: st.SearchStrategy[Any]) -> Any:
    """A value of the strategy, of which some part may be replaced by one that is near to it."""
    value = draw(values)
    return _distort(draw, value) if draw(st.booleans()) else value


def _distort(draw: st.DrawFn, value: Any) -> Any:
    inside = draw(st.booleans())
    if inside and isinstance(value, (list, tuple)) and value and not hasattr(type(value), "__annotations__"):
        position = draw(st.integers(0, len(value) - 1))
        parts = [_distort(draw, part) if i == position else part for i, part in enumerate(value)]
        return Row.factory(value._fields)(parts) if isinstance(value, Row) else type(value)(parts)
    if inside and isinstance(value, dict) and value:
        chosen = draw(st.sampled_from(sorted(value, key=repr)))
        return {key: _distort(draw, part) if key is chosen else part for key, part in value.items()}
    return draw(st.sampled_from([*_near(value), None, "x", 1, 1.5, (1, "a"), [1]]))


def _near(value: Any) -> list[Any]:
    if isinstance(value, bool):
        return [int(value), np.bool_(value)]
    if isinstance(value, int):
        return [float(value) if abs(value) < 2**60 else 0.5, 2**70, 2**31, 128, True, str(value), np.int64(value % 100)]
    if isinstance(value, float):
        return [1, np.float32(0.5), Decimal("0.5"), 1e300, 2**60 + 1, "1.0"]
    if isinstance(value, str):
        return [Text(value), value.encode(), "\ud800", "two", "ü", 5]
    if isinstance(value, bytes):
        return [bytearray(value), memoryview(value), "text"]
    if isinstance(value, Decimal):
        return [1, 1.5, Decimal("1.50000"), Decimal("NaN"), Decimal(10) ** 30, Decimal("-0.000")]
    if isinstance(value, dt.datetime):
        return [
            value.date(),
            value.replace(tzinfo=None),
            value.replace(tzinfo=dt.UTC),
            value.replace(tzinfo=dt.timezone.max) if 1 < value.year < 9999 else value,
            value.replace(fold=1),
            Moment(2024, 1, 1),
        ]
    if isinstance(value, dt.date):
        return [dt.datetime(2024, 1, 1), value.toordinal()]
    if isinstance(value, dt.time):
        return [value.replace(tzinfo=dt.UTC), value.replace(fold=1), 5]
    if isinstance(value, Instant):
        return [Instant(2**40, 0), Instant(1, 2_000_000_000), Instant(1, -5), 5]
    if isinstance(value, Row):
        names = [f"f{i}" for i in range(len(value))] if value._fields is None else list(value._fields)
        return [
            tuple(value),
            list(value),
            Row(*value),
            Row(*reversed(names))(*reversed(value)),
            Row(**dict(zip(names, value, strict=True))),
            Row(*(f"other {name}" for name in names))(*value),
            Row.of_kind(RowKind.DELETE, *value),
            Row(*value, 1),
            Row(*value[1:]),
        ]
    if isinstance(value, tuple):
        return [list(value), Row(*value), (*value, 1), value[1:]]
    if isinstance(value, list):
        return [tuple(value), set(), Row(*value), {}]
    if isinstance(value, dict):
        return [list(value.items()), {None: 1}, {1: 1, "a": 2}]
    return []
