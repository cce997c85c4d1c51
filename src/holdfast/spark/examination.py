"""Gathers what ``holdfast doctor`` judges: from the application, and by tasks from every executor."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TooLate
from typing import Any

from pyspark import InheritableThread
from pyspark.sql import SparkSession

from holdfast.doctor.facts import ApplicationFacts, Clock, HostFacts, Request
from holdfast.doctor.hosts import host_facts, probe_task
from holdfast.spark.accelerations import Acceleration, Accelerations
from holdfast.spark.connect import refuse_connect
from holdfast.spark.executors import ExecutorWait, executors_of, is_local
from holdfast.spark.failures import gist
from holdfast.spark.session import epoch_session, unchecked_session
from holdfast.types.settings import SparkSettings

#: Tasks of a round end together, so that each slot of the application has one of them.
_PAUSE_SECONDS = 0.5
_CLOCK_PAUSE_SECONDS = 0.02
_CLOCK_ROUNDS = 3
#: Storages are tried one after the other, and each may take ten seconds.
_LONGEST_SECONDS = 120.0
#: More than an application has.
_ALL_SLOTS = 1 << 30
_GROUP = "holdfast doctor"

#: What an executor is known by: its host, and the process that its Python workers come from.
_Place = tuple[str, int]


def session_to_examine(settings: SparkSettings, data_frames: Sequence[Any]) -> SparkSession:
    """The session that a job would run in, unfit or not. ConfigurationError for one of Spark Connect."""
    if not data_frames:
        return unchecked_session(settings.conf, settings.internals)
    session: SparkSession = data_frames[0].sparkSession
    refuse_connect(session)
    return session


def examine(session: SparkSession, settings: SparkSettings, request: Request) -> ApplicationFacts:
    """Runs some short Spark jobs, with a task for each slot of the application. ConfigurationError for settings of
    accelerations that do not exist.
    """
    context = session.sparkContext
    with epoch_session(session, {}, own=True) as epochs:
        accelerations = Accelerations.of(epochs, settings)
    local = is_local(session)
    ExecutorWait(session, accelerations, 0.0, time.sleep).first(_ALL_SLOTS)
    known = len(executors_of(session, accelerations)) if accelerations.has(Acceleration.EXECUTOR_IDS) or local else None
    executors, failure = ((), "no executor is there") if known == 0 else _executors(session, request)
    return ApplicationFacts(
        spark_version=session.version,
        java_version=_java_version(session),
        master=str(context.master),
        is_local=local,
        settings=dict(context.getConf().getAll()),
        accelerations_off=_off(accelerations),
        executors=executors,
        executors_known=known,
        task_failure=failure,
    )


def _off(accelerations: Accelerations) -> dict[str, tuple[str, str]]:
    """The daemon is a setting of the application, and judged as one."""
    return {
        each.title: (reason, each.otherwise)
        for each, reason in accelerations.missing.items()
        if each is not Acceleration.WORKER_DAEMON
    }


def _java_version(session: SparkSession) -> str:
    found = session.sql("SELECT java_method('java.lang.System', 'getProperty', 'java.version')").first()
    return str(found[0]) if found is not None else ""


def _executors(session: SparkSession, request: Request) -> tuple[tuple[HostFacts, ...], str | None]:
    """What each executor saw, or the reason why none could be asked."""
    try:
        seen, clocks = _round(session, probe_task(request, _PAUSE_SECONDS))
        for _ in range(_CLOCK_ROUNDS):
            clocks = _better(clocks, _round(session, probe_task(None, _CLOCK_PAUSE_SECONDS))[1])
    except TooLate:
        return (), f"tasks have not ended within {_LONGEST_SECONDS:g} s"
    except Exception as error:
        return (), gist(str(error)) or type(error).__name__
    return tuple(host_facts(facts, clocks[place]) for place, facts in sorted(seen.items())), None


def _round(
    session: SparkSession, task: Callable[[Any], list[dict[str, Any]]]
) -> tuple[dict[_Place, dict[str, Any]], dict[_Place, Clock]]:
    """What a task saw on each executor, if it was to look, and how far its clock is ahead."""
    context = session.sparkContext
    slots = max(1, context.defaultParallelism)
    begun = time.time()
    answers = _in_time(context, lambda: context.parallelize(range(slots), slots).mapPartitions(task).collect())
    half = (time.time() - begun) / 2
    seen: dict[_Place, dict[str, Any]] = {}
    clocks: dict[_Place, Clock] = {}
    for answer in answers:
        place = (answer["host"], answer["process"])
        seen[place] = answer["facts"]
        clocks[place] = Clock(answer["time"] - begun - half, half)
    return seen, clocks


def _better(first: Mapping[_Place, Clock], second: Mapping[_Place, Clock]) -> dict[_Place, Clock]:
    """For each place, the less uncertain of two readings."""
    return {place: min(clock, second.get(place, clock), key=lambda one: one.error) for place, clock in first.items()}


def _in_time(context: Any, run: Callable[[], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """A Spark job that is given up when it takes too long: one that no executor takes waits for ever."""
    answer: Future[list[dict[str, Any]]] = Future()

    def job() -> None:
        context.setJobGroup(_GROUP, "looks at every executor", interruptOnCancel=True)
        try:
            answer.set_result(run())
        except BaseException as error:
            answer.set_exception(error)

    thread: threading.Thread = InheritableThread(target=job, daemon=True)
    thread.start()
    try:
        return answer.result(_LONGEST_SECONDS)
    except TooLate:
        context.cancelJobGroup(_GROUP)
        raise
