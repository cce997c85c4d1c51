"""The Spark session that epochs run in: the user's own when there is one, else a local one."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from holdfast.errors import ConfigurationError
from holdfast.spark.java import ensure_java

logger = logging.getLogger(__name__)

#: Core settings, fixed when the application starts. They carry speed and quick failure; correctness does not rest on
#: them.
_CORE_SETTINGS = {
    "spark.stage.maxConsecutiveAttempts": "1",
    "spark.task.maxFailures": "1",
    "spark.shuffle.reduceLocality.enabled": "false",
    "spark.locality.wait": "30s",
    "spark.ui.showConsoleProgress": "false",
    "spark.ui.enabled": "false",
    "spark.python.worker.reuse": "true",
    "spark.sql.ui.retainedExecutions": "20",
}

#: The daemon that keeps partitions with their Python processes.
WORKER_DAEMON = "holdfast.spark.worker_daemon"

#: With these Spark kills, or reads the trace of, the process that greeted it, which may have another task by now.
_PAST_THE_DAEMON = (
    "spark.python.worker.killOnIdleTimeout",
    "spark.python.worker.faulthandler.enabled",
    "spark.sql.execution.pyspark.udf.killOnIdleTimeout",
    "spark.sql.execution.pyspark.udf.faulthandler.enabled",
)

#: Tasks talk to their Python processes through files instead of ports. By port, where either side writes little at a
#: time, the system waits 40 ms for more of it in every task.
_SOCKETS = "spark.python.unix.domain.socket.enabled"
_SOCKET_DIRECTORY = "spark.python.unix.domain.socket.dir"
#: With more, Spark refuses the name of the directory.
_LONGEST_DIRECTORY = 61

#: What Spark has to do in such a session is little, and to compile it as if it were much takes a core for minutes.
_JAVA_OPTIONS = {"spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1"}

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


def obtain_session(settings: Mapping[str, str]) -> SparkSession:
    """The active session, or a new local one with ``settings`` (``spark.*`` keys) above our own."""
    active = SparkSession.getActiveSession()
    if active is not None:
        _check(active)
        return active
    ensure_java()
    # Without it Spark starts whatever python3 is on the path, which need not be the one that has our packages.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("holdfast")
    own = {"spark.master": "local[*]", **_CORE_SETTINGS, **_EPOCH_SETTINGS}
    chosen = {**own, **_submitted_settings(), **settings}
    if _takes_our_daemon(chosen):
        chosen.setdefault("spark.python.daemon.module", WORKER_DAEMON)
    chosen = {**(_JAVA_OPTIONS if _starts_java(chosen) else {}), **_sockets(chosen), **chosen}
    for key, value in chosen.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    _check(session)
    return session


@contextmanager
def session_for_a_while(settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """``obtain_session``, for a test run: a session that is made here is stopped at the end."""
    active = SparkSession.getActiveSession()
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
    return _starts_java(settings) and _workers_find(WORKER_DAEMON)


def _starts_java(settings: Mapping[str, str]) -> bool:
    """Whether the session has one JVM, which is started with it."""
    return settings["spark.master"].startswith("local") and "PYSPARK_GATEWAY_PORT" not in os.environ


def _sockets(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings for Unix sockets, if they can be had. Not in a directory of Spark's choice, which is Java's for
    temporary files: its name may be too long.
    """
    directory = settings.get(_SOCKET_DIRECTORY, tempfile.gettempdir())
    here = settings["spark.master"].startswith("local") and hasattr(socket, "AF_UNIX")
    if not here or len(os.fsencode(directory)) > _LONGEST_DIRECTORY:
        return {}
    return {_SOCKETS: "true", _SOCKET_DIRECTORY: directory}


def _workers_find(module: str) -> bool:
    """Whether the Python of workers, which need not be this one, has a module without what Spark ships with tasks."""
    look = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    try:
        looked = subprocess.run([os.environ["PYSPARK_PYTHON"], "-c", look], check=False, stderr=subprocess.DEVNULL)
    except OSError:
        return False
    return looked.returncode == 0


def _submitted_settings() -> dict[str, str]:
    """What spark-submit was told, the master included. What a builder sets would win over it."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return {}
    SparkContext._ensure_initialized()
    return dict(SparkConf().getAll())


@contextmanager
def epoch_session(session: SparkSession, settings: Mapping[str, str], own: bool) -> Iterator[SparkSession]:
    """The session with the settings that epochs need: one of its own, so that the user's stays as it is.

    A job that reads the user's DataFrames runs in their session, whose settings are put back at its end.
    """
    chosen = session.newSession() if own else session
    wanted = {
        **_EPOCH_SETTINGS,
        **{k: v for k, v in settings.items() if k.startswith("spark.sql.") and chosen.conf.isModifiable(k)},
    }
    with changed_settings(chosen, wanted):
        yield chosen


@contextmanager
def changed_settings(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Settings of a session for a while, which are put back even if one of them cannot be set."""
    before: dict[str, str | None] = {key: session.conf.get(key, None) for key in settings}
    try:
        for key, value in settings.items():
            session.conf.set(key, value)
        yield
    finally:
        # An application that is gone has no settings; its own error is the one to see.
        with suppress(Py4JError, OSError):
            for key, previous in before.items():
                if previous is None:
                    session.conf.unset(key)
                else:
                    session.conf.set(key, previous)


def application_is_gone(session: SparkSession) -> bool:
    """Whether the Spark application has ended under us: its context was stopped, or the driver's JVM died."""
    java_context = session.sparkContext._jsc
    if java_context is None:
        return True
    try:
        return bool(java_context.sc().isStopped())
    except (Py4JError, OSError):
        return True


def _check(session: SparkSession) -> None:
    conf = session.sparkContext.getConf()
    if conf.get("spark.speculation", "false").lower() == "true":
        raise ConfigurationError(
            "spark.speculation is true: Spark would run a subtask twice at the same time, and its state with it. Set "
            "spark.speculation=false for this application."
        )
    if conf.get("spark.dynamicAllocation.enabled", "false").lower() == "true":
        logger.warning(
            "spark.dynamicAllocation.enabled is true: an idle executor that is given back takes its local state with "
            "it, and the job restores from its last "
            "checkpoint. Set it to false, or spark.dynamicAllocation.executorIdleTimeout high."
        )
    if str(session.sparkContext.master).startswith("local"):
        return
    for key in ("spark.stage.maxConsecutiveAttempts", "spark.task.maxFailures"):
        if conf.get(key, "4") != "1":
            logger.warning(
                "%s is not 1: a lost executor is noticed later than it could be. Set %s=1 when the application starts.",
                key,
                key,
            )
    if conf.get("spark.shuffle.reduceLocality.enabled", "true") != "false":
        logger.warning(
            "spark.shuffle.reduceLocality.enabled is not false: slots may move between executors, and each move "
            "costs a restore. Set it to false when the application starts."
        )
