"""Declared types on Spark: their form, their errors, their text and their order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.common import Row, RowKind, Types
from holdfast.errors import JobExecutionError
from tests.integration.programs import environment

pytestmark = [pytest.mark.usefixtures("spark"), pytest.mark.slow]

NAMED = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.LONG()])
PEOPLE: list[Any] = [("ann", 1), Row(age=2, name="bob"), Row.of_kind(RowKind.DELETE, "cleo", 3)]


def test_all_followers_get_the_declared_form(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    env = environment()
    people = env.from_collection(PEOPLE).map(lambda row: row, NAMED)
    chained = people.map(lambda row: f"{row.get_row_kind()} {row.name}", Types.STRING())
    behind_a_key = people.key_by(lambda row: row.name).map(lambda row: f"{row.get_row_kind()} {row['name']}")
    people.set_parallelism(1).print("people")
    chained.print("chained")
    behind_a_key.print("keyed")
    env.execute()
    lines = [line for line in capfd.readouterr().out.splitlines() if "> " in line]
    shown = sorted(f"{line.partition(':')[0]} {line.partition('> ')[2]}" for line in lines)
    assert shown == sorted(
        [
            *("people +I[ann,1]", "people +I[bob,2]", "people -D[cleo,3]"),
            *("chained +I ann", "chained +I bob", "chained -D cleo"),
            *("keyed +I ann", "keyed +I bob", "keyed -D cleo"),
        ]
    )


def test_rows_are_collected_in_the_order_of_the_source() -> None:
    rows = list(environment().from_collection(range(100), Types.LONG()).execute_and_collect())
    assert rows == list(range(100))
    positions = environment().from_collection([(1, "a")], Types.ROW([Types.LONG(), Types.STRING()]))
    assert [str(row) for row in positions.execute_and_collect()] == ["Row(f0=1, f1='a')"]


@pytest.mark.parametrize("exchanged", [False, True])
def test_what_is_not_of_the_type_is_refused(exchanged: bool) -> None:
    numbers = environment().from_collection([1, 2**63]).map(lambda n: n, Types.LONG()).name("numbers")
    stream = numbers.rebalance() if exchanged else numbers
    with pytest.raises(JobExecutionError, match="9223372036854775808, is not of the declared type LONG") as raised:
        list(stream.map(lambda n: n).execute_and_collect())
    assert "RowTypeError: operator 'numbers'" in str(raised.value)
