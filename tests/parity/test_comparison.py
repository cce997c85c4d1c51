"""What two packages must have in common, and what they need not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.common import Row
from tests.parity import records
from tests.parity.__main__ import DIFFERS, PROJECT, SAME, UNEXPECTEDLY_SAME, _verdict, differences
from tests.parity.case import MODES, PARALLELISMS, Case, Order, Setting, attempt, printed_line, program, text_of
from tests.parity.expected import DIFFERENCES
from tests.parity.runner import (
    FAILED,
    FAILS_AS_IT_SHOULD,
    Results,
    Runner,
    chosen_modules,
    load,
    module_names,
    programs_of,
)
from tests.parity.test_recorded import stdout_as_text

STREAM, STREAMS, BATCHES = Setting("STREAMING", 1), Setting("STREAMING", 2), Setting("BATCH", 2)


def case(order: Order = Order.NEVER) -> Case:
    return Case(1, order, MODES, PARALLELISMS, "")


@pytest.mark.parametrize(
    ("order", "in_order"), [(Order.NEVER, []), (Order.ALONE, [STREAM]), (Order.ALWAYS, [STREAM, STREAMS, BATCHES])]
)
def test_order_counts_where_it_is_promised(order: Order, in_order: list[Setting]) -> None:
    kept = [each for each in (STREAM, STREAMS, BATCHES) if case(order).compared(["b", "a"], each) == ["b", "a"]]
    assert kept == in_order


def test_numbers_of_subtasks_do_not_count() -> None:
    lines = ["2> (a,1)", "mine:1> 5", "mine> 5", "7"]
    assert [printed_line(line) for line in lines] == ["N> (a,1)", "mine:N> 5", "mine> 5", "7"]
    assert case(Order.ALWAYS).compared(["N> (a,1)", "mine:N> 5"], STREAMS) == ["N> (a,1)", "mine:N> 5"]
    assert case(Order.ALWAYS).compared(["N> (a,1)", "mine:N> 5"], BATCHES) == ["(a,1)", "mine> 5"]


def test_texts_of_values() -> None:
    assert text_of({"b": (1,), "a": [Row(2)]}) == "{'a': [<Row(2)>], 'b': (1, )}"
    assert text_of({"a": 1, "b": 2}) == text_of({"b": 2, "a": 1})
    assert len({text_of(value) for value in (1, 1.0, "1", [1], (1,), b"1", True)}) == 7


def test_errors_have_the_names_of_python() -> None:
    class Own(Exception): ...

    class OwnValueError(Own, ValueError): ...

    def fail(error: Exception) -> None:
        raise error

    assert attempt(lambda: fail(OwnValueError())) == "raises ValueError"
    assert attempt(lambda: fail(Own())) == "raises Exception"
    assert attempt(lambda: "text") == "text"


def test_settings_that_differ_alike_stand_together() -> None:
    alike = {setting.name: ["a"] for setting in case().settings()}
    assert differences(case(), alike, alike) == []
    other = {**alike, "BATCH-1": ["b"], "BATCH-2": ["b"], "STREAMING-2": [FAILED, "ValueError: no"]}
    one, two = differences(case(), alike, other)
    assert one == "  STREAMING-2: failed here: ValueError: no"
    assert two == "  BATCH-1, BATCH-2: 1 missing, 1 more\n    - a\n    + b"
    assert len(differences(case(), alike, {})) == 1


def test_the_list_of_differences_is_strict() -> None:
    verdicts = [_verdict(differs, why) for differs in (False, True) for why in (None, "a reason")]
    assert verdicts == [SAME, UNEXPECTEDLY_SAME, DIFFERS, "differs, as expected"]


def test_the_list_of_differences_is_on_the_page_for_users() -> None:
    page = (PROJECT / "docs/how-to/coming-from-pyflink.md").read_text()
    rows = dict(line.strip("| ").split(" | ", 1) for line in page.splitlines() if line.startswith("| `"))
    told = {name.strip("`"): why for name, why in rows.items() if name.strip("`").partition(".")[0] in module_names()}
    assert told == DIFFERENCES


def test_results_and_records_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = Results("pyflink", "2.3.0", {"a.b": case(Order.ALONE)}, {"a.b": {"STREAMING-1": ["x"]}})
    results.write(tmp_path / "results")
    assert Results.read(tmp_path / "results").runs == results.runs
    assert Results.read(tmp_path / "results").cases["a.b"].order is Order.ALONE
    monkeypatch.setattr(records, "RECORDED", tmp_path)
    runs = {"b": {"STREAMING-1": ["x"], "STREAMING-2": ["y"], "BATCH-1": ["x"]}}
    records.write("a", "2.3.0", runs)
    assert records.read("a") == runs
    assert records.read("unknown") == {}


def test_modules_are_chosen_by_the_beginning_of_names() -> None:
    assert chosen_modules(["*"]) == module_names()
    assert chosen_modules(["windows.tumb*", "s*.x"]) == ["state", "streams", "surface", "windows"]


@pytest.mark.parametrize("module", module_names())
def test_every_program_is_recorded_with_the_settings_of_its_text(module: str) -> None:
    """What is new, or was changed, is recorded: ``make parity PARITY="--only 'module.program' --record"``."""
    programs: Any = programs_of(load(module, "holdfast"))
    in_text = {name: {setting.name for setting in program.case.settings()} for name, program in programs.items()}
    assert {name: set(runs) for name, runs in records.read(module).items()} == in_text


def test_programs_that_fail_as_they_should_have_an_error_of_their_own() -> None:
    @program(fails="three")
    def fails(env: Any, out: Path) -> None:
        raise ValueError("three")

    @program(fails="three")
    def has_a_mistake(env: Any, out: Path) -> None:
        env.nothing_of_this_name()

    @program(fails="three")
    def does_not_fail(env: Any, out: Path) -> list[str]:
        return ["three"]

    runner = Runner("holdfast", stdout_as_text)
    assert runner.lines(fails, STREAM) == [FAILS_AS_IT_SHOULD]
    with pytest.raises(AttributeError, match="nothing_of_this_name"):
        runner.lines(has_a_mistake, STREAM)
    with pytest.raises(AssertionError, match="should fail"):
        runner.lines(does_not_fail, STREAM)
