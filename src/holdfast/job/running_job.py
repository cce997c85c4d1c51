"""A job master and the thread of the driver that drives it."""

from __future__ import annotations

import threading
from collections.abc import Callable

from holdfast.errors import JobExecutionError
from holdfast.job.engine import Engine
from holdfast.job.gateway import JobGateway
from holdfast.job.job import Job
from holdfast.job.job_master import JobMaster


class RunningJob:
    """``application_id`` is that of the Spark application that the job runs in, and ``driver_host`` the name by which
    its executors find the driver, if one is known.
    """

    def __init__(self, job: Job, engine: Engine) -> None:
        self.application_id = engine.application_id
        self.driver_host = engine.driver_host
        self.master = JobMaster(job, engine)
        self.gateway = JobGateway(self.master)
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[BaseException | None], None]] = []
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name=f"holdfast-{self.job_id[:8]}", daemon=True)

    @property
    def job_id(self) -> str:
        return self.master.job.facts.job_id

    def start(self) -> RunningJob:
        self._thread.start()
        return self

    def on_end(self, callback: Callable[[BaseException | None], None]) -> None:
        """Called with the job's error, or None, when it has ended; at once when it already has."""
        with self._lock:
            if not self._ended.is_set():
                self._callbacks.append(callback)
                return
        callback(self._error)

    @property
    def running(self) -> bool:
        return not self._ended.is_set()

    def _run(self) -> None:
        try:
            self.master.run()
        except JobExecutionError as error:
            # Whoever waits raises it again: where in this thread it was made says nothing of the program.
            full = self.master.job.failures.full_traces
            self._error = error if full else error.with_traceback(None)
        except BaseException as error:
            self._error = error
        with self._lock:
            self._ended.set()
            callbacks = list(self._callbacks)
        for callback in callbacks:
            callback(self._error)
