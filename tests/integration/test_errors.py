"""Bad programs, bad settings and bad luck: each ends in an error that says what was seen and what to do, and nothing
is lost.
"""

from __future__ import annotations

import json
import os
import re
import threading
from pathlib import Path
from typing import Any

import pytest

from holdfast.common import Types, WatermarkStrategy
from holdfast.datastream import FlatMapFunction, MapFunction, RuntimeContext
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.datastream.state import ValueStateDescriptor
from holdfast.errors import (
    ConfigurationError,
    FunctionError,
    HoldfastError,
    JobExecutionError,
    JobLockedError,
    NotPicklableError,
    NullKeyError,
    ProgramError,
    StateDescriptorError,
    StateMigrationError,
)
from tests.integration import swapped_store_program, tolerant_job
from tests.integration.programs import PAIR, Scripted, averages, environment, published
from tests.kit.driver import DriverProgram
from tests.kit.faults import FaultPlan

ROWS = [(i % 3, i) for i in range(30)]


def cause_of(caught: pytest.ExceptionInfo[JobExecutionError]) -> BaseException:
    assert caught.value.__cause__ is not None
    return caught.value.__cause__


class Divides(MapFunction):
    def map(self, value: tuple[int, int]) -> int:
        return 100 // (value[1] - 7)


def test_a_function_that_raises_is_named_with_subtask_key_and_row(spark: Any) -> None:
    env = environment()
    env.from_collection(ROWS, PAIR).key_by(lambda row: row[0]).map(Divides(), Types.LONG()).name("divide").print()
    with pytest.raises(JobExecutionError) as caught:
        env.execute("dividing")
    failure = cause_of(caught)
    assert isinstance(failure, FunctionError)
    for told in ("operator 'divide'", "subtask ", "/2", "key 1", "ZeroDivisionError", "(1, 7)"):
        assert told in str(failure)


def _ends_its_process(row: tuple[int, int]) -> tuple[int, int]:
    if row[1] == 7:
        os._exit(3)
    return row


@pytest.mark.parametrize("internals", ["auto", "off"])
def test_a_worker_that_ends_without_a_word_is_named_by_slot_and_operators(spark: Any, internals: str) -> None:
    env = environment(**{"restart-strategy.type": "none", "holdfast.spark.internals": internals}).set_parallelism(2)
    first = env.from_collection(ROWS, PAIR).key_by(lambda row: row[0]).map(_ends_its_process, PAIR).name("ends")
    first.key_by(lambda row: row[1]).map(lambda row: row, PAIR).name("later").print()
    with pytest.raises(JobExecutionError) as caught:
        env.execute("a worker that ends")
    assert re.match(r"slot [12]/2, the task of 'ends': .*Python worker exited", str(cause_of(caught)))


class OwnError(BaseException):
    """No Exception: nothing that handles errors of a program is meant for it."""


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt("no"), OwnError("own")])
def test_what_is_meant_to_end_a_process_is_an_error_of_the_function(spark: Any, error: BaseException) -> None:
    def fail(row: tuple[int, int]) -> tuple[int, int]:
        if row == (1, 7):
            raise error
        return row

    env = environment()
    env.from_collection(ROWS, PAIR).key_by(lambda row: row[0]).map(fail, PAIR).name("ends").print()
    with pytest.raises(JobExecutionError) as caught:
        env.execute("a function that ends")
    failure = str(cause_of(caught))
    assert isinstance(cause_of(caught), FunctionError)
    for told in ("operator 'ends'", "subtask ", "/2", "key 1", type(error).__name__, "(1, 7)"):
        assert told in failure


def test_a_null_key_names_the_operator(spark: Any) -> None:
    env = environment()
    env.from_collection(ROWS, PAIR).name("rows").key_by(lambda row: None if row[1] == 9 else row[0]).map(
        lambda r: r
    ).print()
    with pytest.raises(JobExecutionError) as caught:
        env.execute("no key")
    assert isinstance(cause_of(caught), NullKeyError)
    assert "operator 'rows'" in str(caught.value) and "(0, 9)" in str(caught.value)


def test_a_function_that_cannot_be_pickled_is_refused_before_anything_runs(spark: Any) -> None:
    class Holder(MapFunction):
        def __init__(self) -> None:
            self.lock = threading.Lock()

        def map(self, value: Any) -> Any:
            return value

    env = environment()
    env.from_collection(ROWS).map(Holder()).name("holder").print()
    with pytest.raises(NotPicklableError, match=r"'holder'.*field 'lock'.*open\(\)"):
        env.execute("unpicklable")


class TwoDescriptors(FlatMapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        runtime_context.get_state(ValueStateDescriptor("same", Types.LONG()))
        runtime_context.get_state(ValueStateDescriptor("same", Types.STRING()))

    def flat_map(self, value: Any) -> Any:
        return ()


def test_two_descriptors_of_one_name_must_agree(spark: Any) -> None:
    env = environment()
    env.from_collection(ROWS, PAIR).key_by(lambda row: row[0]).flat_map(TwoDescriptors()).name("twice").print()
    with pytest.raises(JobExecutionError) as caught:
        env.execute("descriptors")
    assert isinstance(cause_of(caught), StateDescriptorError)
    assert "'same'" in str(caught.value) and "twice" in str(caught.value)


def test_parallelism_above_the_maximum_is_refused(spark: Any) -> None:
    env = environment().set_max_parallelism(3)
    env.from_collection(ROWS, PAIR).key_by(lambda row: row[0]).map(lambda r: r).name("wide").set_parallelism(4).print()
    with pytest.raises(ProgramError, match="'wide': parallelism 4 is above its maximum parallelism 3"):
        env.execute("too wide")


def test_unknown_values_of_settings_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"execution\.checkpointing\.mode.*EXACTLY_ONCE"):
        environment(**{"execution.checkpointing.mode": "sometimes"}).get_checkpoint_config().get_checkpointing_mode()
    env = environment(**{"state.backend": "floppy"})
    env.from_collection(ROWS, PAIR).print()
    with pytest.raises(ConfigurationError, match=r"'floppy'.*lmdb"):
        env.execute("backend")


def test_a_checkpoint_directory_that_cannot_be_written_is_an_error_at_the_start(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    target = tmp_path / "file" / "checkpoints"
    env = environment(**{"execution.checkpointing.interval": "1 s", "execution.checkpointing.dir": str(target)})
    env.from_collection(ROWS, PAIR).print()
    with pytest.raises(HoldfastError, match=str(target)):
        env.execute("nowhere to write")


def retained(tmp_path: Path) -> dict[str, str]:
    return {
        "execution.checkpointing.interval": "10 ms",
        "execution.checkpointing.dir": str(tmp_path / "chk"),
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        "holdfast.epoch.idle-wait": "50 ms",
    }


class Keeps(MapFunction):
    def __init__(self, type_info: Any, value: Any) -> None:
        self.type_info, self.value = type_info, value

    def open(self, runtime_context: RuntimeContext) -> None:
        self.state = runtime_context.get_state(ValueStateDescriptor("kept", self.type_info))

    def map(self, value: tuple[int, int]) -> tuple[int, int]:
        self.state.value()
        self.state.update(self.value)
        return value


def keeping(env: Any, function: Keeps, out: Path, ends: bool) -> Any:
    source = env.from_source(Scripted([ROWS], ends), WatermarkStrategy.no_watermarks(), "script").uid("source")
    source.key_by(lambda row: row[0]).map(function, PAIR).name("keeper").uid("keeper").sink_to(
        FileSink.json(str(out))
    ).uid("out")
    return env.execute_async("keeping")


def test_a_state_type_that_changed_incompatibly_names_state_operator_and_both_types(spark: Any, tmp_path: Path) -> None:
    first = keeping(environment(**retained(tmp_path)), Keeps(Types.LONG(), 1), tmp_path / "out", ends=False)
    while len(published(tmp_path / "out")) < len(ROWS):
        assert first.is_running()
    first.cancel().result()
    (checkpoint,) = (tmp_path / "chk").glob("*/chk-*")
    settings = retained(tmp_path) | {
        "execution.state-recovery.path": str(checkpoint),
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "5",
    }
    second = keeping(environment(**settings), Keeps(Types.STRING(), "x"), tmp_path / "out", ends=True)
    with pytest.raises(JobExecutionError) as caught:
        second.get_job_execution_result().result()
    failure = cause_of(caught)
    assert isinstance(failure, StateMigrationError)
    for told in ("kept", "keeper", "LONG", "STRING"):
        assert told in str(failure)
    # Another attempt cannot mend it: none was made, and the checkpoint is where it was.
    assert second.get_history().restarts == 0 and (checkpoint / "_metadata").exists()


def test_a_second_driver_on_the_same_job_directory_is_refused(spark: Any, tmp_path: Path) -> None:
    settings = retained(tmp_path) | {"holdfast.job-id": "only-one"}
    first = keeping(environment(**settings), Keeps(Types.LONG(), 1), tmp_path / "out", ends=False)
    try:
        with pytest.raises(JobLockedError, match=r"only-one"):
            keeping(environment(**settings), Keeps(Types.LONG(), 1), tmp_path / "out", ends=False)
    finally:
        first.cancel().result()


@pytest.mark.slow
@pytest.mark.parametrize("point", ["snapshot.write", "checkpoint.before-metadata"])
def test_a_full_disk_aborts_the_checkpoint_and_the_job_goes_on(spark: Any, point: str, tmp_path: Path) -> None:
    faults = FaultPlan(tmp_path / "faults")
    trigger = faults.add(point, "raise:ENOSPC", hit=2)
    with faults.among(spark):
        client = tolerant_job.run(tmp_path)
    assert faults.reached(trigger) is not None
    counts = client.get_checkpoint_statistics().counts
    assert counts.failed >= 1 and counts.completed >= 1 and client.get_history().restarts == 0
    assert published(tmp_path / "out") == averages(tolerant_job.ROWS)


def test_an_error_of_the_program_is_not_tried_again_by_spark(tmp_path: Path) -> None:
    """Although it is told to try a task four times, as where a user has made the session."""
    with DriverProgram(
        Path(__file__).with_name("retried_program.py"), [str(tmp_path)], output=tmp_path / "driver.log"
    ) as driver:
        assert driver.wait(120) == 0, driver.output
        told = [line for line in driver.output.splitlines() if line.startswith(("function: ", "state: "))]
    assert told == ["function: FunctionError", "state: StateTypeError"]
    for name in ("function", "state"):
        assert len((tmp_path / name).read_text().splitlines()) == 1


def test_a_store_of_another_version_fails_the_epoch_at_once(tmp_path: Path) -> None:
    """No try of Spark's finds another store there. The attempt after it restores, and the job is exact."""
    with DriverProgram(
        Path(__file__).with_name("swapped_store_program.py"), [str(tmp_path)], output=tmp_path / "driver.log"
    ) as driver:
        assert driver.wait(240) == 0, driver.output
        course = json.loads(driver.output.splitlines()[-1])
    assert course["restarts"] == 1 and course["tried again"] == []
    ((kind, message),) = course["failures"]
    assert kind == "StoreVersionError"
    assert re.search(r"cannot be opened at epoch \d+ .* it is at epoch \d+ ", message), message
    assert published(tmp_path / "out") == averages(swapped_store_program.ROWS)
