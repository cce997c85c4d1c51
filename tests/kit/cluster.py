"""A real Spark standalone cluster on loopback, from the jars of pip's pyspark."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from holdfast.spark.accelerations import WORKER_DAEMON
from holdfast.testing.chaos.processes import Process, descendants, die_with_parent, kill_all, wait_until
from tests.kit.class_archive import quick_start
from tests.kit.driver import python_path

_BACKEND = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
_START_SECONDS = 60.0


@dataclass(frozen=True)
class Executor:
    """One executor JVM of the cluster and the worker that started it."""

    process: Process
    application: str
    executor_id: str
    worker: int


class StandaloneCluster:
    """A master and workers in processes of their own; as a context manager it leaves none of them behind.

    A driver connects with ``settings`` (which hold the master's URL). Executors are those of all running applications;
    one that is killed is replaced by its worker. Each worker has a directory of its own for temporary files: what
    Holdfast keeps on a host's disk is not shared between executors of two workers, as if they were on two hosts.

    ``bare`` hosts have the system's programs and Spark, and nothing of the environment of this process.
    """

    def __init__(
        self, workers: int = 2, cores_per_worker: int = 1, memory: str = "1g", bare: bool = False
    ) -> None:
        self._worker_count = workers
        self._cores = cores_per_worker
        self._memory = memory
        self._bare = bare
        self._directory = Path()
        self._daemons: list[subprocess.Popen[bytes]] = []
        self._web = ""
        self.master_url = ""

    def __enter__(self) -> StandaloneCluster:
        self._directory = Path(tempfile.mkdtemp(prefix="holdfast-cluster-"))
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def settings(self) -> dict[str, str]:
        """Spark settings for a driver that uses all of this cluster."""
        return {
            "spark.master": self.master_url,
            "spark.master.ui.port": self._web.rpartition(":")[2],
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.executor.cores": str(self._cores),
            "spark.executor.memory": self._memory,
            "spark.executorEnv.PYTHONPATH": python_path(),
            "spark.pyspark.python": sys.executable,
            "spark.python.daemon.module": WORKER_DAEMON,
            "spark.python.unix.domain.socket.enabled": "true",
            # An executor of another host would not find the files of one that died either.
            "spark.shuffle.readHostLocalDisk": "false",
            "spark.driver.extraJavaOptions": quick_start(),
            "spark.executor.extraJavaOptions": quick_start(),
        }

    @staticmethod
    def bare_environment() -> dict[str, str]:
        """What processes of a bare host are started with."""
        return {"PATH": os.defpath, "LANG": "C.UTF-8"}

    def state(self) -> dict[str, Any]:
        """The master's view: workers, applications."""
        with urllib.request.urlopen(f"{self._web}/json/", timeout=10) as answer:
            state: dict[str, Any] = json.load(answer)
        return state

    def executors(self) -> list[Executor]:
        """Living executors, by worker and then by executor id."""
        found = []
        for number, daemon in enumerate(self._daemons[1:]):
            for process in descendants(daemon.pid):
                if process.name == "java" and _BACKEND in process.command:
                    found.append(Executor(process, _option(process, "app-id"), _option(process, "executor-id"), number))
        return sorted(found, key=lambda executor: (executor.worker, int(executor.executor_id)))

    def executor_pids(self) -> list[int]:
        return [executor.process.pid for executor in self.executors()]

    def wait_for_executors(self, count: int, timeout: float = 60.0) -> list[Executor]:
        """Executors, once exactly ``count`` of them live."""

        def look() -> list[Executor] | None:
            found = self.executors()
            return found if len(found) == count else None

        return wait_until(look, timeout, f"{count} executors", interval=0.1)

    def kill_executor(self, index: int) -> Executor:
        """SIGKILL one executor JVM. Its Python workers notice and end; its worker starts another one."""
        victim = self.executors()[index]
        kill_all([victim.process])
        return victim

    def kill_worker(self, index: int) -> None:
        """SIGKILL a worker with its executors, as when a host goes down. It does not come back."""
        self._kill(self._daemons[1 + index])

    def cut_off(self, index: int) -> list[Process]:
        """Stop a worker and its executors: their connections stay open, and nothing ever comes. Those to resume."""
        daemon = self._daemons[1 + index].pid
        stopped = [found for found in [Process.read(daemon), *descendants(daemon)] if found is not None]
        for process in stopped:
            process.stop()
        return stopped

    def pause_worker(self, index: int) -> None:
        """A worker starts no executors until it is resumed. Executors that it has started go on."""
        daemon = Process.read(self._daemons[1 + index].pid)
        assert daemon is not None and daemon.stop()

    def resume_worker(self, index: int) -> None:
        daemon = Process.read(self._daemons[1 + index].pid)
        assert daemon is not None and daemon.resume()

    def close(self) -> None:
        """End every process of the cluster and remove its files. May be called again."""
        # The master goes first, so that no worker is asked to start another executor.
        for daemon in self._daemons:
            self._kill(daemon)
        self._daemons = []
        if self._directory != Path():
            shutil.rmtree(self._directory, ignore_errors=True)

    def log(self, name: str) -> str:
        """Output of ``master`` or ``worker-<n>``."""
        return (self._directory / f"{name}.log").read_text(errors="replace")

    def _start(self) -> None:
        # Port 0 lets each daemon take a free one, which its log then names: nobody can take it in between.
        self._launch("master", "org.apache.spark.deploy.master.Master", "--port", "0", "--webui-port", "0")
        self.master_url = self._announced("master", r"Starting Spark master at (spark://127\.0\.0\.1:\d+)")
        port = self._announced("master", r"Bound MasterWebUI to .* started at http://[^\s:]+:(\d+)")
        self._web = f"http://127.0.0.1:{port}"
        for number in range(self._worker_count):
            files = self._directory / f"worker-{number}"
            resources = ["-c", str(self._cores), "-m", self._memory, "-d", str(files)]
            worker = "org.apache.spark.deploy.worker.Worker"
            self._launch(f"worker-{number}", worker, "--webui-port", "0", *resources, self.master_url)
        wait_until(self._all_registered, _START_SECONDS, f"{self._worker_count} registered workers", interval=0.1)

    def _launch(self, name: str, main: str, *arguments: str) -> None:
        import pyspark

        home = Path(pyspark.__file__).parent
        temporary = self._directory / f"{name}-tmp"
        temporary.mkdir()
        environment = {
            **(self.bare_environment() if self._bare else {**os.environ, "PYSPARK_PYTHON": sys.executable}),
            **_java_environment(),
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": quick_start(),
            "SPARK_LOCAL_DIRS": str(self._directory / "local"),
            "TMPDIR": str(temporary),
        }
        with (self._directory / f"{name}.log").open("wb") as log:
            daemon = subprocess.Popen(
                [str(home / "bin" / "spark-class"), main, "--host", "127.0.0.1", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._directory,
                env=environment,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )
        self._daemons.append(daemon)

    def _announced(self, name: str, pattern: str) -> str:
        expression = re.compile(pattern)

        def look() -> str | None:
            self._check_alive()
            found = expression.search(self.log(name))
            return found.group(1) if found else None

        return wait_until(look, _START_SECONDS, f"{pattern!r} in the log of {name}", interval=0.05)

    def _all_registered(self) -> bool | None:
        self._check_alive()
        alive = [worker for worker in self.state()["workers"] if worker["state"] == "ALIVE"]
        return True if len(alive) == self._worker_count else None

    def _check_alive(self) -> None:
        for number, daemon in enumerate(self._daemons):
            if daemon.poll() is not None:
                name = "master" if number == 0 else f"worker-{number - 1}"
                raise RuntimeError(f"{name} ended with {daemon.returncode} during start:\n{self.log(name)}")

    @staticmethod
    def _kill(daemon: subprocess.Popen[bytes]) -> None:
        # PySpark's daemons leave the process group of their executor, so the family is found by parentage.
        top = Process.read(daemon.pid)
        family = [] if top is None else [top, *descendants(daemon.pid)]
        kill_all(family)
        daemon.wait(20)


def _option(process: Process, name: str) -> str:
    return process.command[process.command.index(f"--{name}") + 1]


def _java_environment() -> dict[str, str]:
    """JAVA_HOME for the daemons: the caller's, else java on the path, else the one that Holdfast brings."""
    if "JAVA_HOME" in os.environ or shutil.which("java"):
        return {}
    from holdfast.spark.java import ensure_java

    ensure_java()
    return {"JAVA_HOME": os.environ["JAVA_HOME"]}
