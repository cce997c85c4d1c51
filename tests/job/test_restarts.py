"""Which new attempts the restart strategy counts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.common import JobClient
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.errors import EpochError, HoldfastError, JobExecutionError, StoreVersionError, UnfitExecutorError
from holdfast.runtime.epoch import EpochSpec
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import published
from tests.job.counting import EPOCHS, counting, counts_of, settings

NO_RESTART = {"restart-strategy.type": "none"}
#: Longer than any of these jobs lives.
NEVER = {"execution.checkpointing.interval": "365 d", "execution.checkpointing.min-pause": "365 d"}


def run(tmp_path: Path, **changes: str) -> JobClient:
    return counting(settings(tmp_path, **changes), EPOCHS, FileSink.json(str(tmp_path / "out")))


def failing(
    in_process: InProcessEngine,
    attempts: int,
    after: int = 0,
    error: Callable[[str], HoldfastError] = StoreVersionError,
) -> None:
    """The first attempts fail, each when it has run ``after`` epochs."""

    def before_epoch(spec: EpochSpec) -> None:
        done = sum(attempt == spec.attempt for attempt, _ in in_process.epochs)
        if spec.attempt <= attempts and done == after:
            raise error("state is not on this host")

    in_process.before_epoch = before_epoch


def reasons(client: JobClient) -> list[str]:
    return [failure.reason for failure in client.get_history().failures]


def test_moves_with_a_checkpoint_in_between_are_free(in_process: InProcessEngine, tmp_path: Path) -> None:
    failing(in_process, attempts=5, after=1)
    client = run(tmp_path, **NO_RESTART)
    client.get_job_execution_result().result()
    assert reasons(client) == ["state moved without a loss"] * 5
    assert client.get_history().restarts == 5
    assert published(tmp_path / "out") == counts_of(EPOCHS)


def test_moves_without_a_checkpoint_in_between_are_free_a_few_times_only(
    in_process: InProcessEngine, tmp_path: Path
) -> None:
    failing(in_process, attempts=99)
    client = run(tmp_path, **NO_RESTART)
    with pytest.raises(JobExecutionError, match="restarts are disabled"):
        client.get_job_execution_result().result()
    assert reasons(client)[:-1] == ["state moved without a loss"] * 3
    assert client.get_history().attempt == 4


def test_epochs_alone_make_no_move_free(in_process: InProcessEngine, tmp_path: Path) -> None:
    """The job would run the same epochs for ever: only a checkpoint brings it on."""
    failing(in_process, attempts=99, after=2)
    client = run(tmp_path, **NO_RESTART, **NEVER)
    with pytest.raises(JobExecutionError, match="restarts are disabled"):
        client.get_job_execution_result().result()
    assert client.get_history().attempt == 4
    assert published(tmp_path / "out") == []


def test_a_checkpoint_begins_the_count_anew(in_process: InProcessEngine, tmp_path: Path) -> None:
    def before_epoch(spec: EpochSpec) -> None:
        done = sum(attempt == spec.attempt for attempt, _ in in_process.epochs)
        # Two attempts get nowhere, the third gets to a checkpoint, two more get nowhere, and so on.
        if spec.attempt <= 9 and done == (spec.attempt % 3 == 0):
            raise StoreVersionError("state is not on this host")

    in_process.before_epoch = before_epoch
    client = run(tmp_path, **NO_RESTART)
    client.get_job_execution_result().result()
    assert client.get_history().restarts == 9
    assert published(tmp_path / "out") == counts_of(EPOCHS)


@pytest.mark.parametrize("attempts", [0, 1])
def test_without_checkpointing_a_move_counts(in_process: InProcessEngine, tmp_path: Path, attempts: int) -> None:
    """A new attempt begins with nothing: what moved is lost."""
    failing(in_process, attempts=2, after=1)
    given = settings(tmp_path, **{"restart-strategy.fixed-delay.attempts": str(attempts)} if attempts else NO_RESTART)
    del given["execution.checkpointing.interval"]
    client = counting(given, EPOCHS, FileSink.json(str(tmp_path / "out")))
    with pytest.raises(JobExecutionError, match="used up" if attempts else "restarts are disabled"):
        client.get_job_execution_result().result()
    assert client.get_history().attempt == attempts + 1


def test_free_moves_leave_the_strategy_what_it_has(in_process: InProcessEngine, tmp_path: Path) -> None:
    errors = iter([StoreVersionError, EpochError, StoreVersionError, EpochError, StoreVersionError])
    failing(in_process, attempts=5, after=1, error=lambda text: next(errors)(text))
    client = run(tmp_path, **{"restart-strategy.fixed-delay.attempts": "2"})
    client.get_job_execution_result().result()
    assert [reason.partition(" ")[0] for reason in reasons(client)] == ["state", "restart", "state", "restart", "state"]
    assert published(tmp_path / "out") == counts_of(EPOCHS)


def test_a_failure_is_not_free(in_process: InProcessEngine, tmp_path: Path) -> None:
    failing(in_process, attempts=1, after=1, error=EpochError)
    with pytest.raises(JobExecutionError, match="restarts are disabled"):
        run(tmp_path, **NO_RESTART).get_job_execution_result().result()


def test_an_executor_that_comes_is_used_behind_a_checkpoint_and_costs_no_restart(
    in_process: InProcessEngine, tmp_path: Path
) -> None:
    def after_epoch(spec: EpochSpec) -> None:
        if spec.epoch == 2:
            in_process.executors = frozenset({"0", "1"})

    in_process.after_epoch = after_epoch
    client = run(tmp_path, **NO_RESTART)
    client.get_job_execution_result().result()
    history = client.get_history()
    assert (history.attempt, history.restarts, list(history.failures)) == (2, 0, [])
    assert in_process.epochs[:4] == [(1, 1), (1, 2), (2, 3), (2, 4)]
    assert published(tmp_path / "out") == counts_of(EPOCHS)


def test_without_a_checkpoint_an_executor_that_comes_waits(in_process: InProcessEngine, tmp_path: Path) -> None:
    def after_epoch(spec: EpochSpec) -> None:
        in_process.executors = frozenset({"0", "1"})

    in_process.after_epoch = after_epoch
    client = run(tmp_path, **NO_RESTART, **NEVER)
    client.get_job_execution_result().result()
    assert client.get_history().attempt == 1


def test_an_executor_that_is_not_fit_ends_a_job_only_before_its_first_epoch(
    in_process: InProcessEngine, tmp_path: Path
) -> None:
    """At the start no restart can mend it; later the next executor may be fit."""
    failing(in_process, attempts=1, after=3, error=UnfitExecutorError)
    client = run(tmp_path / "later")
    client.get_job_execution_result().result(60)
    assert client.get_history().restarts == 1
    in_process.epochs.clear()
    failing(in_process, attempts=1, after=0, error=UnfitExecutorError)
    with pytest.raises(JobExecutionError, match="another attempt cannot mend it"):
        run(tmp_path / "first").get_job_execution_result().result(60)
