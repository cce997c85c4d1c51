"""The course of the demo: start, kill a worker in the middle, end the input, wait for the job, judge."""

from __future__ import annotations

import time
from dataclasses import dataclass

from holdfast.common import JobClient
from holdfast.demo.displays import Display
from holdfast.demo.events import SensorFeed
from holdfast.demo.job import Directories, start_job
from holdfast.demo.progress import Notebook, observe
from holdfast.demo.verdict import Verdict, judge
from holdfast.demo.workers import kill_busy_worker

_LOOK_SECONDS = 0.1
#: A kill that no restart follows hit a worker between two epochs; then another one is killed.
_PATIENCE_SECONDS = 4.0
#: The input ends after so many times its planned length even if no kill had an effect.
_LONGEST = 3
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
        self._kills = 0
        self._last_kill = 0.0
        self._ended = False
        self._failures_told = 0

    def tell(self, backend: str) -> Outcome:
        """Run it all. JobExecutionError when the job fails for good."""
        self._notebook.add(f"starting Spark on two cores; everything is in {self._directories.root}")
        with self._display as display:
            client = self._start(backend)
            self._feed.start()
            began = time.monotonic()
            while client.is_running():
                self._act(client, time.monotonic() - began)
                self._tell_failures(client)
                display.show(observe(client, self._notebook, self._feed.events))
                time.sleep(_LOOK_SECONDS)
            client.get_job_execution_result()
            self._notebook.add("the job has finished; computing the same directly from the input")
            display.show(observe(client, self._notebook, self._feed.events))
        verdict = judge(self._directories.input, self._directories.output)
        return Outcome(verdict, client.get_history().restarts, self._kills)

    def _start(self, backend: str) -> JobClient:
        client = start_job(self._directories, backend)
        self._notebook.add(f"job {client.get_job_id()} is submitted; {self._scale.sensors:,} sensors begin to send")
        return client

    def _act(self, client: JobClient, seconds: float) -> None:
        """Kill and end the input when their time has come."""
        restarts = client.get_history().restarts
        planned = self._scale.seconds
        if restarts == 0 and seconds > 0.4 * planned and not self._ended:
            self._kill(client)
        if not self._ended and (seconds > _LONGEST * planned or (seconds > planned and restarts > 0)):
            self._ended = True
            self._feed.end()
            self._notebook.add("the sensors fall silent: the input ends")

    def _kill(self, client: JobClient) -> None:
        completed = client.get_checkpoint_statistics().counts.completed
        if completed < _CHECKPOINTS_BEFORE_KILL or time.monotonic() - self._last_kill < _PATIENCE_SECONDS:
            return
        pid = kill_busy_worker()
        if pid is not None:
            self._kills += 1
            self._last_kill = time.monotonic()
            self._notebook.add(f"SIGKILL to Python worker {pid}, in the middle of an epoch")

    def _tell_failures(self, client: JobClient) -> None:
        failures = list(client.get_history().failures)
        for failure in failures[self._failures_told :]:
            restored = client.get_checkpoint_statistics().latest_completed
            point = "empty state" if restored is None else f"checkpoint {restored.checkpoint_id}"
            self._notebook.add(f"attempt {failure.attempt} failed ({type(failure.error).__name__}); back to {point}")
        self._failures_told = len(failures)
