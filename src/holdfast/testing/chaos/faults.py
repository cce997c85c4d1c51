"""Ways to disturb a job."""

from __future__ import annotations

import random
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from subprocess import TimeoutExpired

from holdfast.testing.chaos.processes import Process, descendants, java_processes
from holdfast.testing.chaos.services import Service
from holdfast.testing.chaos.target import Target

#: A driver whose JVM was killed notices with its next call.
_NOTICE_SECONDS = 60.0
#: So long a fault waits for a process that computes.
_BUSY_SECONDS = 2.0
_LOOK_SECONDS = 0.01

Seconds = tuple[float, float]


class Fault(ABC):
    """One way to disturb a job. Subclass it for one of your own."""

    @property
    @abstractmethod
    def name(self) -> str:
        """As it is counted in results."""

    @abstractmethod
    def strike(self, target: Target, chosen: random.Random) -> bool:
        """Do it, now. What is left open is drawn from ``chosen``.

        The job must be able to go on when this returns: what was taken away is there again. False when there was
        nothing to hit, which counts as no fault.
        """


class KillWorker(Fault):
    """SIGKILL to a Python worker, one that computes if one does before long."""

    name = "worker"

    def strike(self, target: Target, chosen: random.Random) -> bool:
        victim = _pick(target.workers(), chosen)
        return victim is not None and victim.kill()


class KillExecutor(Fault):
    """SIGKILL to an executor's JVM. Its Python workers end with it, and the cluster starts another one."""

    name = "executor"

    def strike(self, target: Target, chosen: random.Random) -> bool:
        victim = _pick(target.executors(), chosen)
        return victim is not None and victim.kill()


class KillDriver(Fault):
    """SIGKILL to the driver, and another one is started: to all of its processes, to Python alone, whose JVM goes on
    for a moment beside the next driver's, or to the JVM alone, without which Python ends.
    """

    name = "driver"

    def strike(self, target: Target, chosen: random.Random) -> bool:
        driver = target.driver
        if driver.code is not None:
            return False
        how = chosen.choice((driver.kill, driver.kill_python, driver.kill_jvm))
        if how == driver.kill_jvm and not java_processes(driver.pid):
            how = driver.kill
        how()
        with suppress(TimeoutExpired):
            driver.wait(_NOTICE_SECONDS)
        if driver.code is None:
            driver.kill()
        target.start_driver()
        return True


class PauseWorker(Fault):
    """SIGSTOP to a Python worker, and SIGCONT after a while: a process that hangs."""

    name = "worker paused"

    def __init__(self, seconds: Seconds = (0.5, 4.0)) -> None:
        self._seconds = seconds

    def strike(self, target: Target, chosen: random.Random) -> bool:
        victim = _pick(target.workers(), chosen)
        return victim is not None and _pause([victim], chosen.uniform(*self._seconds))


class PauseDriver(Fault):
    """SIGSTOP to the driver, and SIGCONT after a while: to its Python, to its JVM, or to both and the workers."""

    name = "driver paused"

    def __init__(self, seconds: Seconds = (0.5, 4.0)) -> None:
        self._seconds = seconds

    def strike(self, target: Target, chosen: random.Random) -> bool:
        top = Process.read(target.driver.pid)
        if top is None:
            return False
        groups = [[top], java_processes(top.pid), [top, *descendants(top.pid)]]
        return _pause(chosen.choice(groups), chosen.uniform(*self._seconds))


class KillService(Fault):
    """A service is killed, and started again after a while."""

    def __init__(self, service: Service, seconds: Seconds = (0.0, 2.0)) -> None:
        self._service = service
        self._seconds = seconds

    @property
    def name(self) -> str:
        return self._service.name

    def strike(self, target: Target, chosen: random.Random) -> bool:
        self._service.kill()
        time.sleep(chosen.uniform(*self._seconds))
        self._service.start()
        return True


class StopService(Fault):
    """A service is ended in order, and started again after a while."""

    def __init__(self, service: Service, seconds: Seconds = (0.0, 2.0)) -> None:
        self._service = service
        self._seconds = seconds

    @property
    def name(self) -> str:
        return f"{self._service.name} stopped"

    def strike(self, target: Target, chosen: random.Random) -> bool:
        self._service.stop()
        time.sleep(chosen.uniform(*self._seconds))
        self._service.start()
        return True


def _pick(processes: Sequence[Process], chosen: random.Random) -> Process | None:
    """One that computes, if one does before long: nothing depends on a worker between two tasks."""
    deadline = time.monotonic() + _BUSY_SECONDS
    while processes and time.monotonic() < deadline:
        busy = [process for process in processes if process.computes]
        if busy:
            return chosen.choice(busy)
        time.sleep(_LOOK_SECONDS)
    return chosen.choice(processes) if processes else None


def _pause(processes: Sequence[Process], seconds: float) -> bool:
    stopped = [process for process in processes if process.stop()]
    time.sleep(seconds)
    for process in stopped:
        process.resume()
    return bool(stopped)
