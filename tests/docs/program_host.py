"""A process that runs programs, one after the other, in one Spark application.

It reads a line of JSON for each, with ``program``, ``arguments``, ``directory`` and ``seconds``, and answers with a
line with its exit code. A program finds what it would find in a process of its own: it is ``__main__``, in a
namespace, a working directory, an environment and a Spark session of its own. What it prints is in the files ``stdout``
and ``stderr`` of the directory above its own.
"""

from __future__ import annotations

import faulthandler
import json
import os
import re
import runpy
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession


def main() -> None:
    # The answers have a descriptor of their own: whatever else is written here is the program's.
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        order = json.loads(line)
        command = [order["program"], *order["arguments"]]
        code = run(command, Path(order["directory"]), order["seconds"])
        last = leaves_jobs()
        print(json.dumps({"code": code, "last": last}), file=answers, flush=True)
        if last:
            return


def run(command: list[str], directory: Path, seconds: float) -> int:
    """The exit code, as if Python had been started with the program. After ``seconds`` its stacks are in ``stderr``."""
    with _own_output(directory.parent), _own_process_state(command, directory):
        _give_session(directory)
        with (directory.parent / "stderr").open("a") as stacks:
            faulthandler.dump_traceback_later(seconds, file=stacks)
            try:
                return _exit_code(command[0])
            finally:
                faulthandler.cancel_dump_traceback_later()
                _clean_session()


def leaves_jobs() -> bool:
    """Whether a job of the program goes on. It would end with a process of its own, and so this one ends."""
    jobs = [thread for thread in threading.enumerate() if re.fullmatch("holdfast-(?!rest$).*", thread.name)]
    for thread in jobs:
        thread.join(2)
    return any(thread.is_alive() for thread in jobs)


def _exit_code(program: str) -> int:
    try:
        runpy.run_path(program, run_name="__main__")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


@contextmanager
def _own_output(directory: Path) -> Iterator[None]:
    """Descriptors and not only ``sys.stdout``: native code prints as well."""
    kept = [(number, os.dup(number)) for number in (1, 2)]
    for (number, _), name in zip(kept, ("stdout", "stderr"), strict=True):
        with (directory / name).open("ab") as file:
            os.dup2(file.fileno(), number)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, before in kept:
            os.dup2(before, number)
            os.close(before)


@contextmanager
def _own_process_state(command: list[str], directory: Path) -> Iterator[None]:
    before = os.getcwd(), dict(os.environ), list(sys.path), list(sys.argv)
    os.chdir(directory)
    # Of a script the first entry is its folder; ours is not for programs to import from.
    sys.path[0], sys.argv[:] = os.path.dirname(command[0]), command
    try:
        yield
    finally:
        os.chdir(before[0])
        os.environ.clear()
        os.environ.update(before[1])
        sys.path[:], sys.argv[:] = before[2:]


def _give_session(directory: Path) -> None:
    """A new session of the application that an earlier program has started. Its JVM has the working directory of the
    host, so Spark is told where relative paths begin."""
    shared = SparkSession.getActiveSession()
    if shared is None:
        return
    fresh = shared.newSession()
    jvm: Any = fresh._jvm
    jvm.SparkSession.setActiveSession(fresh._jsparkSession)
    jvm.SparkSession.setDefaultSession(fresh._jsparkSession)
    SparkSession._instantiatedSession = fresh
    # One for file systems that Hadoop has opened, one for those that it will open.
    hadoop = jvm.org.apache.hadoop.fs
    open_files = hadoop.FileSystem.get(fresh._jsparkSession.sessionState().newHadoopConf())
    open_files.setWorkingDirectory(hadoop.Path(str(directory)))
    jvm.java.lang.System.setProperty("user.dir", str(directory))


def _clean_session() -> None:
    """What a program leaves in an application that lives on. One that was stopped has nothing."""
    session = SparkSession.getActiveSession()
    if session is None or session.sparkContext._jsc is None:
        return
    for query in session.streams.active:
        query.stop()
    session.catalog.clearCache()


if __name__ == "__main__":
    main()
