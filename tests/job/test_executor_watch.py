"""A lost executor interrupts the epoch that runs, and no other."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from holdfast.errors import EpochError
from holdfast.job.executor_watch import ExecutorWatch


class Cluster:
    """Executors, and an epoch that ends when it is interrupted."""

    def __init__(self) -> None:
        self.executors = frozenset({"0", "1", "2"})
        self.interrupted = threading.Event()

    def watch(self, *holders: str) -> ExecutorWatch:
        return ExecutorWatch(Runner(self, frozenset(holders)), lambda: self.executors)


class Runner:
    """The runner of an attempt whose slots are on ``holders``."""

    watched = True

    def __init__(self, cluster: Cluster, holders: frozenset[str]) -> None:
        self._cluster = cluster
        self._holders = holders

    def holders(self) -> frozenset[str]:
        return self._holders

    def interrupt(self) -> None:
        self._cluster.interrupted.set()

    def run(self, spec: Any, slices: Any) -> Any: ...

    def close(self) -> None: ...


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_a_lost_executor_with_slots_interrupts_the_epoch(cluster: Cluster) -> None:
    watch = cluster.watch("0", "1")
    with pytest.raises(EpochError, match=r"2 executors with slots .* lost while an epoch ran: 1"), watch.during_epoch():
        cluster.executors -= {"1"}
        assert cluster.interrupted.wait(10)
        raise RuntimeError("what Spark says of a job that was cancelled")
    watch.close()


def test_one_that_was_lost_before_interrupts_the_next_epoch(cluster: Cluster) -> None:
    watch = cluster.watch("0", "1")
    with watch.during_epoch():
        assert not cluster.interrupted.wait(0.4)
    cluster.executors -= {"0"}
    with pytest.raises(EpochError, match="lost"), watch.during_epoch():
        assert cluster.interrupted.wait(10)
        raise RuntimeError("cancelled")
    watch.close()


def test_an_executor_without_slots_may_go(cluster: Cluster) -> None:
    watch = cluster.watch("0", "1")
    with watch.during_epoch():
        cluster.executors -= {"2"}
        assert not cluster.interrupted.wait(0.8)
    watch.close()


def test_errors_of_an_epoch_without_a_loss_are_themselves(cluster: Cluster) -> None:
    watch = cluster.watch("0", "1")
    with pytest.raises(RuntimeError, match="its own"), watch.during_epoch():
        raise RuntimeError("its own")
    watch.close()
    assert not cluster.interrupted.is_set()


def gone() -> frozenset[str]:
    raise OSError("it cannot be asked")


def test_a_scheduler_that_cannot_be_asked_is_no_loss_and_told_once(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    watch = ExecutorWatch(Runner(cluster, frozenset({"0"})), gone)
    for _ in range(2):
        with watch.during_epoch():
            assert not cluster.interrupted.wait(0.8)
    watch.close()
    assert ["it cannot be asked" in record.message for record in caplog.records] == [True]


def test_an_application_that_is_gone_fails_by_itself(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    watch = ExecutorWatch(Runner(cluster, frozenset({"0"})), gone)
    with pytest.raises(RuntimeError, match="gone"), watch.during_epoch():
        assert not cluster.interrupted.wait(0.4)
        raise RuntimeError("the application is gone")
    watch.close()
    assert not caplog.records
