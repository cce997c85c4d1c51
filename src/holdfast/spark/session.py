"""The Spark session that epochs run in: the user's own when there is one, else a local one."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pyspark
from pyspark.sql import SparkSession

from holdfast.doctor.application_settings import (
    DAEMON_SETTING,
    SOCKETS,
    WORKER_DAEMON,
    judge_settings,
    settings_of_ours,
)
from holdfast.doctor.findings import Level
from holdfast.doctor.judge_spark import version_of
from holdfast.errors import ConfigurationError
from holdfast.spark.connect import refuse_connect, refuse_connect_settings
from holdfast.spark.executors import is_local
from holdfast.spark.internals.jvm import JVM_ERRORS, submitted_settings
from holdfast.spark.java import ensure_java
from holdfast.spark.program_paths import EXECUTOR_PATH, local_python_path
from holdfast.spark.run_folder import run_folder
from holdfast.spark.session_settings import changed_settings

logger = logging.getLogger(__name__)

#: Core settings, fixed when the application starts. They carry speed and quick failure; correctness does not rest on
#: them.
_CORE_SETTINGS = {
    **settings_of_ours(),
    "spark.ui.showConsoleProgress": "false",
    "spark.ui.enabled": "false",
    "spark.sql.ui.retainedExecutions": "20",
}

#: With these Spark kills, or reads the trace of, the process that greeted it, which may have another task by now.
_PAST_THE_DAEMON = (
    "spark.python.worker.killOnIdleTimeout",
    "spark.python.worker.faulthandler.enabled",
    "spark.sql.execution.pyspark.udf.killOnIdleTimeout",
    "spark.sql.execution.pyspark.udf.faulthandler.enabled",
)

#: Fails with a line that says why.
_LOOK_FOR_DAEMON = (
    f"import sys, {WORKER_DAEMON}; from holdfast.spark.internals.worker_process import misfit; sys.exit(misfit())"
)

#: Where the files are through which tasks talk to their Python processes, instead of ports.
_SOCKET_DIRECTORY = "spark.python.unix.domain.socket.dir"
#: With more, Spark refuses the name of the directory.
_LONGEST_DIRECTORY = 61

#: Since then Spark deletes the shuffles of a query when that has ended.
_DELETES_SHUFFLES = (4, 1)

#: SQL settings of the session that runs epochs.
_EPOCH_SETTINGS = {
    # With adaptive execution a level without rows does not run at all, and its timers and barriers with it.
    "spark.sql.adaptive.enabled": "false",
    # A broadcast join would not put a task where its anchor row is cached.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.classic.shuffleDependency.fileCleanup.enabled": "true",
    # Rows of a DataFrame are small and many, envelopes are large: batches for Python are limited by bytes.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.sql.execution.arrow.maxBytesPerBatch": "16m",
}


def obtain_session(settings: Mapping[str, str], internals: bool = True) -> SparkSession:
    """The active session, or a new local one with ``settings`` (``spark.*`` keys) above our own."""
    session = unchecked_session(settings, internals)
    check_session(session)
    return session


def unchecked_session(settings: Mapping[str, str], internals: bool = True) -> SparkSession:
    """A session as ``obtain_session`` gives it, whatever its application was told. Not of Spark Connect."""
    active = _active_session(settings)
    if active is not None:
        return active
    ensure_java()
    _choose_python(settings)
    builder = SparkSession.builder.appName("holdfast")
    own = {"spark.master": "local[*]", **_CORE_SETTINGS, **_EPOCH_SETTINGS}
    chosen = {**own, **(submitted_settings() if was_submitted() else {}), **settings}
    # Workers import what the program, or its test, has made importable.
    chosen |= local_python_path(chosen)
    if internals and _takes_our_daemon(chosen):
        chosen.setdefault(DAEMON_SETTING, WORKER_DAEMON)
    if version_of(pyspark.__version__) < _DELETES_SHUFFLES:
        # Before, their files go with the driver's garbage alone, and it looks for that twice an hour.
        chosen.setdefault("spark.cleaner.periodicGC.interval", "1min")
    chosen = {**_sockets(chosen), **chosen}
    for key, value in chosen.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _choose_python(settings: Mapping[str, str]) -> None:
    """For workers: what is configured, else what the environment says, else the Python of this process. Spark itself
    looks at the setting only in spark-submit, and then takes whatever python3 is on the path, which need not be the one
    that has our packages.
    """
    chosen = settings.get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON") or sys.executable
    os.environ["PYSPARK_PYTHON"] = chosen


def _active_session(settings: Mapping[str, str]) -> SparkSession | None:
    """The active session. A Spark Connect client is not even asked for one: it would connect."""
    refuse_connect_settings(settings)
    active = SparkSession.getActiveSession()
    refuse_connect(active)
    return active


def driver_host(session: SparkSession) -> str | None:
    """The name or address by which executors find the driver."""
    host: str | None = session.sparkContext.getConf().get("spark.driver.host")
    return host


@contextmanager
def session_for_a_while(settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """``obtain_session``, for a test run: a session that is made here is stopped at the end."""
    active = _active_session(settings)
    session = obtain_session(settings)
    try:
        yield session
    finally:
        if active is None:
            session.stop()


def _takes_our_daemon(settings: Mapping[str, str]) -> bool:
    """Not where it may not be found: without its daemon an executor has no Python at all. Nor where Spark deals with
    processes past it.
    """
    if any(settings.get(key, "false").lower() == "true" for key in _PAST_THE_DAEMON):
        return False
    # The hosts of a cluster may have Holdfast for tasks alone, and so may the JVM of spark-submit with --py-files.
    return _starts_java(settings) and _workers_have_daemon(settings.get(EXECUTOR_PATH, ""))


def _starts_java(settings: Mapping[str, str]) -> bool:
    """Whether the session has one JVM, which is started with it."""
    return settings["spark.master"].startswith("local") and not was_submitted()


def was_submitted() -> bool:
    """Whether spark-submit has started this program, and the JVM before it."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _sockets(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings for Unix sockets, if they can be had. Not in a directory of Spark's choice, which is Java's for
    temporary files: its name may be too long, and what a process leaves there that is killed stays.
    """
    if not settings["spark.master"].startswith("local") or not hasattr(socket, "AF_UNIX"):
        return {}
    directory = settings.get(_SOCKET_DIRECTORY) or str(run_folder())
    if len(os.fsencode(directory)) > _LONGEST_DIRECTORY:
        return {}
    return {SOCKETS: "true", _SOCKET_DIRECTORY: directory}


def _workers_have_daemon(path: str) -> bool:
    """Whether the Python of workers, which need not be this one, can import our daemon without what Spark ships with
    tasks, by its own search path and ``path`` before it, and its PySpark is one that the daemon can run tasks with. It
    is really imported: a daemon that does not start leaves an executor without any Python.
    """
    look = [os.environ["PYSPARK_PYTHON"], "-c", _LOOK_FOR_DAEMON]
    paths = [each for each in (path, os.environ.get("PYTHONPATH")) if each]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)} if paths else None
    try:
        looked = subprocess.run(look, check=False, capture_output=True, text=True, env=environment)
    except OSError:
        return False
    if looked.returncode != 0:
        seen = looked.stderr.strip().rpartition("\n")[2]
        logger.warning("Python workers are those of Spark's own daemon, because ours cannot be used: %s", seen)
    return looked.returncode == 0


@contextmanager
def epoch_session(session: SparkSession, settings: Mapping[str, str], own: bool) -> Iterator[SparkSession]:
    """The session with the settings that epochs need: one of its own, so that the user's stays as it is.

    A job that reads the user's DataFrames, or has queries, which may name the user's tables, runs in their session,
    whose settings are put back at its end.
    """
    chosen = session.newSession() if own else session
    wanted = {
        **_EPOCH_SETTINGS,
        **{k: v for k, v in settings.items() if k.startswith("spark.sql.") and chosen.conf.isModifiable(k)},
    }
    with changed_settings(chosen, wanted):
        yield chosen


def application_is_gone(session: SparkSession) -> bool:
    """Whether the Spark application has ended under us: its context was stopped, or the driver's JVM died."""
    try:
        # The scheduler of a context that was stopped refuses to tell; a context that Python stopped has none.
        return session.sparkContext.defaultParallelism < 0
    except (AttributeError, *JVM_ERRORS):
        return True


def check_session(session: SparkSession) -> None:
    """Refuse an application in which no job can be right, and say what makes jobs slower than they need be."""
    refuse_connect(session)
    told = dict(session.sparkContext.getConf().getAll())
    for finding in judge_settings(told, is_local(session), version_of(session.version)):
        if finding.level is Level.RED:
            raise ConfigurationError(f"{finding.subject} is {finding.seen}. {finding.advice}")
        # In local mode they cost little, and nobody asked.
        if finding.level is Level.YELLOW and not is_local(session):
            logger.warning("%s is %s. %s", finding.subject, finding.seen, finding.advice)
