"""The jobs that ``make chaos`` disturbs. A scenario starts what it needs once and then runs any number of rounds.

Behind a killed driver comes one with another parallelism.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import ModuleType

from holdfast.testing.chaos import (
    ChaosResult,
    Fault,
    KillDriver,
    KillExecutor,
    KillService,
    KillWorker,
    Moments,
    Oracle,
    PauseDriver,
    PauseWorker,
    StopService,
    run_chaos,
)
from tests.chaos import timers_job, windows_job
from tests.chaos.points import run_over_points
from tests.integration import stream_job
from tests.integration.kafka.places import Job
from tests.integration.programs import published
from tests.integration.sql import tables
from tests.kit.cluster import StandaloneCluster
from tests.kit.driver import program
from tests.kit.kafka import broker, spark_connector
from tests.kit.postgres import server

Round = Callable[[int, Path], ChaosResult]
Scenario = Callable[[], AbstractContextManager[Round]]

BACKENDS = ("lmdb", "rocksdb", "heap")
LOCAL = {"spark.master": "local[2]", "spark.ui.enabled": "false"}
STREAM_FILES = 20


def _numbers(name: str, job: ModuleType, rows: int, settings: Mapping[str, str], faults: list[Fault]) -> Round:
    """A round of a job of numbers, on the backend that the seed says."""

    def run(seed: int, directory: Path) -> ChaosResult:
        backend = BACKENDS[seed % len(BACKENDS)]
        given = {**settings, "state.backend.type": backend}
        if given["spark.master"] == LOCAL["spark.master"]:
            given["holdfast.state.local-dir"] = str(directory / "local")
        arguments = [str(directory), str(rows), json.dumps(given)]
        oracle = Oracle(
            rows_in=lambda: range(rows),
            rows_out=lambda: job.rows_out(directory),
            expected=job.expected,
            progress=lambda: sum(_size(place) for place in directory.iterdir() if place.name in job.OUTPUTS),
        )
        disturbed = program(f"{name}, {backend}", Path(str(job.__file__)), arguments, directory)
        return run_chaos(disturbed, oracle, faults, Moments(seed, faults=12), directory / "logs")

    return run


@contextmanager
def timers() -> Iterator[Round]:
    """Numbers -> keyed state with timers -> files, in local mode."""
    yield _numbers("timers", timers_job, 120_000, LOCAL, [KillWorker(), KillDriver(), PauseWorker(), PauseDriver()])


@contextmanager
def windows() -> Iterator[Round]:
    """Numbers -> windows -> files, and numbers -> operator state -> files, in local mode."""
    yield _numbers("windows", windows_job, 120_000, LOCAL, [KillWorker(), KillDriver(), KillWorker(), PauseDriver()])


@contextmanager
def executors() -> Iterator[Round]:
    """A cluster of two hosts, whose executors are killed."""
    with StandaloneCluster(workers=2, cores_per_worker=1) as cluster:
        faults = [KillExecutor(), KillWorker(), KillExecutor(), KillDriver()]
        yield _numbers("executors", timers_job, 120_000, cluster.settings, faults)


def _kafka(rows: int, epoch_rows: int, moments: Callable[[int], Moments]) -> Scenario:
    @contextmanager
    def scenario() -> Iterator[Round]:
        with broker() as kafka:

            def topic(partitions: int) -> str:
                return kafka.create_topic(f"topic-{uuid.uuid4().hex[:8]}", partitions)

            def run(seed: int, directory: Path) -> ChaosResult:
                backend = BACKENDS[seed % len(BACKENDS)]
                settings = {"state.backend.type": backend, "execution.checkpointing.interval": "500 ms"}
                settings["holdfast.epoch.max-rows"] = str(epoch_rows)
                job = Job(kafka, topic, directory, rows, 1009)
                faults = [KillWorker(), KillDriver(), KillService(kafka)]
                disturbed = job.program(f"kafka, {backend}", settings)
                return run_chaos(disturbed, job.oracle(), faults, moments(seed), directory / "logs")

            yield run

    return scenario


@contextmanager
def spark_kafka() -> Iterator[Round]:
    """Spark's connector -> keyed state -> Kafka."""
    jars = spark_connector()
    with broker() as kafka:

        def topic(partitions: int) -> str:
            return kafka.create_topic(f"topic-{uuid.uuid4().hex[:8]}", partitions)

        def run(seed: int, directory: Path) -> ChaosResult:
            job = Job(kafka, topic, directory, 100_000, 1009)
            settings = {"execution.checkpointing.interval": "500 ms", "holdfast.stream.available-now": "true"}
            disturbed = job.program("spark-kafka", settings, connector=str(jars), batch_rows=5_000)
            faults = [KillWorker(), KillDriver(), StopService(kafka)]
            moments = Moments(seed, faults=5)
            return run_chaos(disturbed, job.oracle(), faults, moments, directory / "logs")

        yield run


@contextmanager
def postgres() -> Iterator[Round]:
    """Numbers -> keyed state -> tables of PostgreSQL."""
    with server() as database:

        def run(seed: int, directory: Path) -> ChaosResult:
            backend = BACKENDS[seed % len(BACKENDS)]
            settings = {**LOCAL, "state.backend.type": backend, "execution.checkpointing.interval": "500 ms"}
            settings["holdfast.epoch.max-rows"] = "10000"
            job = tables.Job(database, directory, 200_000, 1009)
            faults = [KillWorker(), KillDriver(), KillService(database), StopService(database)]
            disturbed = job.program(f"postgres, {backend}", settings)
            return run_chaos(disturbed, job.oracle(), faults, Moments(seed, faults=6), directory / "logs")

        yield run


@contextmanager
def streams() -> Iterator[Round]:
    """Two streams of Spark's -> keyed state -> files and a writer of Spark's."""

    def run(seed: int, directory: Path) -> ChaosResult:
        stream_job.write_input(directory / "in", STREAM_FILES)
        rows = STREAM_FILES * stream_job.ROWS

        def check() -> None:
            stream_job.audit(directory, STREAM_FILES)
            stream_job.calls(directory)

        oracle = Oracle(
            rows_in=lambda: range(rows),
            rows_out=lambda: [value for origin, value, _ in published(directory / "out") if origin == "file"],
            check=check,
            progress=lambda: _size(directory / "out"),
        )
        disturbed = program("streams", Path(stream_job.__file__), [str(directory)], directory)
        faults = [KillWorker(), KillDriver(), PauseDriver()]
        return run_chaos(disturbed, oracle, faults, Moments(seed, faults=5), directory / "logs")

    yield run


@contextmanager
def points() -> Iterator[Round]:
    """Numbers -> keyed state, twice -> files: workers and drivers die at named points, each once."""

    def run(seed: int, directory: Path) -> ChaosResult:
        settings = {**LOCAL, "state.backend.type": BACKENDS[seed % len(BACKENDS)]}
        settings |= {"holdfast.state.local-dir": str(directory / "local"), "execution.checkpointing.interval": "300 ms"}
        return run_over_points(seed, directory, settings)

    yield run


def _size(directory: Path) -> int:
    """The size of what a reader of the directory sees."""
    return sum(path.stat().st_size for path in directory.glob("*") if path.is_file() and path.name[0] not in "._")


#: In the order of their turns.
SCENARIOS: dict[str, Scenario] = {
    "timers": timers,
    "windows": windows,
    "kafka": _kafka(200_000, 10_000, lambda seed: Moments(seed, faults=6)),
    "postgres": postgres,
    "streams": streams,
    "points": points,
    "executors": executors,
    "spark-kafka": spark_kafka,
}

#: Run only when they are asked for by name.
LARGE: dict[str, Scenario] = {
    "kafka-million": _kafka(1_000_000, 30_000, lambda seed: Moments(seed, faults=20, pause=(0.1, 1.0), hasty=0.4)),
}
