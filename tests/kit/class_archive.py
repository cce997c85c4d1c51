"""Spark's classes, loaded once and kept in an archive of the JVM, from which the drivers of tests start sooner.

``python -m tests.kit.class_archive PATH`` writes one; ``make test`` does so when there is none. A JVM whose class path
is not that of the archive does without it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

#: Names another archive than that of this clone's Spark and Java.
VARIABLE = "HOLDFAST_CLASS_ARCHIVE"
#: Where tests look for it.
ARCHIVE = Path(os.environ.get(VARIABLE) or Path(__file__).resolve().parents[2] / "build" / "spark-classes.jsa")

#: JVMs of tests live for seconds: one that compiles less, and collects garbage with one thread, is up sooner.
_QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def quick_start() -> str:
    """Options of a JVM that lives for seconds."""
    # Where an archive does not fit the JVM says so on its output, which tests read.
    return f"{_QUICK_START} -XX:SharedArchiveFile={ARCHIVE} -Xlog:disable" if ARCHIVE.is_file() else _QUICK_START


def write(path: Path) -> None:
    """Run a small job, so that its JVM leaves the classes that it has loaded."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    path.parent.mkdir(parents=True, exist_ok=True)
    os.environ["SPARK_SUBMIT_OPTS"] = f"{_QUICK_START} -XX:ArchiveClassesAtExit={draft} -Xlog:disable"
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"

    from pyspark import SparkContext

    from holdfast.common import Types
    from holdfast.datastream import StreamExecutionEnvironment

    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    numbers = env.from_collection([1, 2, 3], Types.LONG()).key_by(lambda number: number % 2, Types.LONG())
    assert len(list(numbers.sum(0).execute_and_collect())) == 3
    jvm = SparkContext._gateway.proc
    # It ends with its standard input, and writes the archive then.
    jvm.stdin.close()
    jvm.wait(120)
    draft.replace(path)


if __name__ == "__main__":
    write(Path(sys.argv[1]).absolute())
