"""Errors say where they happened: operator, subtask, key, state, row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import failpoints
from holdfast.common import Types
from holdfast.datastream import KeyedProcessFunction, RuntimeContext
from holdfast.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from holdfast.errors import FunctionError, JobExecutionError, RowTypeError, StateTypeError
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import environment
from tests.kit.faults import FaultPlan

PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])
ROWS = [(f"k{number}", number) for number in range(10)]
BAD = ("k5", 5)
WHERE = "operator 'suspect', subtask 2/2"
LONE = "a\ud800"


class OwnError(BaseException):
    pass


class Suspect(KeyedProcessFunction):
    """Does something wrong with one of the rows."""

    def __init__(self, wrong: Callable[[Suspect, Any], Any]) -> None:
        self._wrong = wrong

    def open(self, runtime_context: RuntimeContext) -> None:
        self.number = runtime_context.get_state(ValueStateDescriptor("number", Types.LONG()))
        pair = Types.TUPLE([Types.LONG(), Types.STRING()])
        self.pair = runtime_context.get_state(ValueStateDescriptor("pair", pair))
        self.list = runtime_context.get_list_state(ListStateDescriptor("list", Types.LONG()))
        self.map = runtime_context.get_map_state(MapStateDescriptor("map", Types.STRING(), Types.LONG()))
        self.sum = runtime_context.get_reducing_state(ReducingStateDescriptor("sum", lambda a, b: a + b, Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        if value == BAD:
            self._wrong(self, ctx)
        yield value


def _failure(
    tmp_path: Path, wrong: Callable[[Suspect, Any], Any] = lambda f, ctx: None, **changes: Any
) -> BaseException:
    """What the job failed with."""
    settings = {"holdfast.state.local-dir": str(tmp_path / "local"), "restart-strategy.type": "none"}
    env = environment(**settings).set_parallelism(2)
    rows = env.from_collection(ROWS, type_info=PAIR).name("rows")
    keyed = rows.key_by(changes.get("selector", lambda row: row[0]), changes.get("key_type", Types.STRING()))
    suspect = keyed.process(Suspect(wrong), PAIR).name("suspect")
    after = suspect.map(changes.get("after", lambda row: row), PAIR).name("after")
    after.key_by(lambda row: row[1], Types.LONG()).map(lambda row: row, PAIR).print()
    with pytest.raises(JobExecutionError) as caught:
        env.execute("a wrong one")
    cause = caught.value.__cause__
    assert cause is not None
    assert str(cause) in str(caught.value)
    return cause


def _raise(error: BaseException) -> None:
    raise error


@pytest.mark.parametrize(
    ("wrong", "state"),
    [
        (lambda f, ctx: f.number.update("text"), "number"),
        (lambda f, ctx: f.list.add("text"), "list"),
        (lambda f, ctx: f.list.add(None), "list"),
        (lambda f, ctx: f.list.update([1, None]), "list"),
        (lambda f, ctx: f.map.put("a", "text"), "map"),
        (lambda f, ctx: f.map.put(None, 1), "map"),
        (lambda f, ctx: f.map.get(None), "map"),
        (lambda f, ctx: f.sum.add("text"), "sum"),
    ],
)
def test_a_wrong_value_names_state_key_and_row(in_process: InProcessEngine, tmp_path: Path, wrong: Any, state: str):
    failure = _failure(tmp_path, wrong)
    assert isinstance(failure, StateTypeError)
    assert str(failure).startswith(f"{WHERE}, key 'k5', state '{state}': ")
    assert str(failure).endswith(f"; the row was {BAD!r}")


@pytest.mark.parametrize(
    ("wrong", "state"),
    [
        (lambda f, ctx: f.number.update(1 << 70), "number"),
        (lambda f, ctx: f.pair.update((1, 2)), "pair"),
        (lambda f, ctx: f.list.add(1 << 70), "list"),
        (lambda f, ctx: f.map.put("a", 1 << 70), "map"),
        (lambda f, ctx: f.map.put(7, 1), "map"),
        (lambda f, ctx: f.map.put(LONE, 1), "map"),
    ],
)
def test_a_value_that_is_encoded_later_names_state_and_key(
    in_process: InProcessEngine, tmp_path: Path, wrong: Any, state: str
):
    """By then the row is gone, and another key is the current one."""
    failure = _failure(tmp_path, wrong)
    assert isinstance(failure, StateTypeError)
    assert str(failure).startswith(f"{WHERE}, key 'k5', state '{state}': ")


@pytest.mark.parametrize("timestamp", [1 << 63, -(1 << 63) - 1, "soon", 1.5])
def test_a_timer_beyond_64_bits(in_process: InProcessEngine, tmp_path: Path, timestamp: Any):
    failure = _failure(tmp_path, lambda f, ctx: ctx.timer_service().register_processing_time_timer(timestamp))
    assert isinstance(failure, StateTypeError)
    assert str(failure).startswith(f"{WHERE}, key 'k5': The timestamp {timestamp!r} ")
    assert str(failure).endswith(f"; the row was {BAD!r}")


@pytest.mark.parametrize("error", [SystemExit(3), GeneratorExit(), OwnError("own"), ValueError("usual")])
def test_whatever_a_function_raises(in_process: InProcessEngine, tmp_path: Path, error: BaseException):
    failure = _failure(tmp_path, lambda f, ctx: _raise(error))
    assert isinstance(failure, FunctionError)
    assert str(failure) == f"{WHERE}, key 'k5': {type(error).__name__}: {error}; the row was {BAD!r}"
    selecting = _failure(tmp_path, selector=lambda row: row[0] if row != BAD else _raise(error))
    assert isinstance(selecting, FunctionError)
    assert f"the key selector raised {type(error).__name__}: {error}; the row was {BAD!r}" in str(selecting)


def test_ctrl_c_ends_the_process_of_the_test(in_process: InProcessEngine, tmp_path: Path):
    """It is no failure of the job, and says where it was met."""
    env = environment(**{"holdfast.state.local-dir": str(tmp_path)})
    env.from_collection(ROWS, PAIR).map(lambda row: _raise(KeyboardInterrupt()), PAIR).name("met").print()
    with pytest.raises(KeyboardInterrupt) as caught:
        env.execute("interrupted")
    assert "operator 'met'" in caught.value.__notes__[0]


def test_a_row_that_is_not_of_its_type(in_process: InProcessEngine, tmp_path: Path):
    failure = _failure(tmp_path, after=lambda row: row if row != BAD else ("k5", "five"))
    assert isinstance(failure, RowTypeError)
    assert str(failure).startswith("operator 'after', subtask 2/2: Row ")
    assert "('k5', 'five'), is not of the declared type" in str(failure)


@pytest.mark.parametrize("key_type", [Types.STRING(), None])
def test_a_key_that_cannot_be_encoded(in_process: InProcessEngine, tmp_path: Path, key_type: Any):
    for key in (LONE, (LONE, 1)) if key_type is None else (LONE,):
        failure = _failure(tmp_path, selector=lambda row, key=key: row[0] if row != BAD else key, key_type=key_type)
        assert isinstance(failure, StateTypeError)
        assert str(failure).startswith("operator 'rows', subtask 1/1: The key 'a\\ud800' (str) cannot be cast")
        assert "lone surrogate" in str(failure)
        assert str(failure).endswith(f"; the row was {BAD!r}")


@pytest.fixture
def faults(tmp_path: Path) -> Iterator[FaultPlan]:
    yield FaultPlan(tmp_path / "faults")
    failpoints.install(None)


def test_a_full_disk_names_slot_operators_and_directory(
    in_process: InProcessEngine, faults: FaultPlan, tmp_path: Path
):
    faults.add("task.before-commit", "raise:ENOSPC", level=1, slot=1)
    failpoints.install(faults.path)
    env = environment(**{"holdfast.state.local-dir": str(tmp_path / "local"), "restart-strategy.type": "none"})
    keyed = env.set_parallelism(2).from_collection(ROWS, PAIR).key_by(lambda row: row[0], Types.STRING())
    keyed.map(lambda row: row, PAIR).name("victim").print()
    with pytest.raises(JobExecutionError) as caught:
        env.execute("a host in trouble")
    assert str(caught.value.__cause__).startswith("slot 2/2, the task of 'victim', 'Print': OSError: ")
    assert f"The disk of the local directory {tmp_path / 'local'} is full" in str(caught.value)
