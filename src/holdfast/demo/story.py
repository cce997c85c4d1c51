"""The course of the demo: start, kill a worker in the middle, end the input, wait for the job, judge."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from holdfast.common import JobClient
from holdfast.demo.displays import Display
from holdfast.demo.events import SensorFeed
from holdfast.demo.job import Directories, start_job
from holdfast.demo.progress import Notebook, Progress, observe
from holdfast.demo.verdict import judge
from holdfast.demo.workers import kill_busy_worker
from holdfast.testing.chaos.oracle import Verdict

_LOOK_SECONDS = 0.1
#: A kill that no restart follows in this time hit a worker between two tasks; then another one is killed.
_PATIENCE_SECONDS = 3.0
#: So much later than planned the input ends even if no kill had an effect.
_LATEST_SECONDS = 60.0
_CHECKPOINTS_BEFORE_KILL = 2


@dataclass(frozen=True)
class Scale:
    """How much there is to see."""

    seconds: float = 20.0
    events_per_second: int = 20_000
    sensors: int = 1_000
    seed: int = 42


@dataclass(frozen=True)
class Outcome:
    verdict: Verdict
    restarts: int
    kills: int

    @property
    def right(self) -> bool:
        """Exactly once, and through a real failure."""
        return self.verdict.exactly_once and self.restarts > 0 and self.kills > 0


class Story:
    """One run of the demo."""

    def __init__(self, directories: Directories, scale: Scale, display: Display) -> None:
        self._directories = directories
        self._scale = scale
        self._display = display
        self._notebook = Notebook()
        self._feed = SensorFeed(directories.input, scale.events_per_second, scale.sensors, scale.seed)
        self._began: float | None = None
        self._ended = False
        self._kills = 0
        self._last_kill = 0.0
        self._failures_told = 0

    def tell(self, backend: str) -> Outcome:
        """Run it all. JobExecutionError when the job fails for good."""
        self._notebook.add(f"starting Spark on two cores; everything is in {self._directories.root}")
        with self._display as display:
            display.show(Progress("STARTING", 0.0, notes=self._notebook.all()))
            client = self._start(backend)
            while client.is_running():
                self._act(client)
                self._tell_failures(client)
                display.show(observe(client, self._notebook, self._feed.events))
                time.sleep(_LOOK_SECONDS)
            client.get_job_execution_result().result()
            self._notebook.add("the job has finished; computing the same directly from the input")
            display.show(observe(client, self._notebook, self._feed.events))
        verdict = judge(self._directories.input, self._directories.output)
        return Outcome(verdict, client.get_history().restarts, self._kills)

    def _start(self, backend: str) -> JobClient:
        client = start_job(self._directories, backend)
        self._notebook.add(f"job {client.get_job_id()} is submitted")
        return client

    def _act(self, client: JobClient) -> None:
        """Begin, kill and end when their time has come. The first epoch, without rows, is Spark warming up."""
        history, planned = client.get_history(), self._scale.seconds
        if self._began is None:
            if history.epochs:
                self._began = time.monotonic()
                self._feed.start()
                self._notebook.add(f"{self._scale.sensors:,} sensors begin to send")
            return
        seconds = time.monotonic() - self._began
        if self._ended:
            return
        if seconds > planned + (0 if history.restarts else _LATEST_SECONDS):
            self._ended = True
            self._feed.end()
            self._notebook.add("the sensors fall silent: the input ends")
        elif seconds > 0.4 * planned and history.restarts == 0:
            self._kill(client)

    def _kill(self, client: JobClient) -> None:
        completed = client.get_checkpoint_statistics().counts.completed
        if completed < _CHECKPOINTS_BEFORE_KILL or time.monotonic() - self._last_kill < _PATIENCE_SECONDS:
            return
        pid = kill_busy_worker(os.getpid())
        if pid is not None:
            self._kills += 1
            self._last_kill = time.monotonic()
            again = " (the last one was between two tasks, and nothing depended on it)" if self._kills > 1 else ""
            self._notebook.add(f"SIGKILL to Python worker {pid}{again}")

    def _tell_failures(self, client: JobClient) -> None:
        failures = list(client.get_history().failures)
        for failure in failures[self._failures_told :]:
            restored = client.get_checkpoint_statistics().latest_completed
            point = "empty state" if restored is None else f"checkpoint {restored.checkpoint_id}"
            self._notebook.add(f"attempt {failure.attempt} failed: {_reason(failure.error)}; back to {point}")
        self._failures_told = len(failures)


def _reason(error: BaseException) -> str:
    """The sentence that says what happened, without where Spark noticed it."""
    return str(error).rpartition("Exception: ")[2].partition(". ")[0][:100]
