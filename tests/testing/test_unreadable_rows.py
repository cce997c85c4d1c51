"""Rows whose class refuses to be made again behind an exchange."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest

from holdfast.datastream import MapFunction
from holdfast.errors import FunctionError
from holdfast.testing import KeyedOperatorHarness


@dataclass
class Reading:
    """A reading of which number 13 can be made once."""

    sensor: str
    number: int
    refused: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.number == 13:
            if Reading.refused:
                raise ValueError("not again")
            Reading.refused = True


class Numbers(MapFunction):
    def map(self, value: Reading) -> int:
        return value.number


def test_no_other_row_is_named() -> None:
    rows = [Reading("a", number % 10) for number in range(5000)] + [Reading("a", 13)]
    with (
        KeyedOperatorHarness(Numbers(), lambda row: row.sensor, "string", input_type=Reading) as harness,
        pytest.raises(FunctionError, match=r"ValueError: not again; the row was 'one of \d+ rows of a batch'"),
    ):
        harness.push_all(rows)
