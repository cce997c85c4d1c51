"""What the bridge between Python and the JVM raises, and what it keeps to itself."""

from __future__ import annotations

from typing import Any

import py4j
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from holdfast.runtime.failure_report import count_as_internal

count_as_internal(py4j)

#: What Spark asks a DataFrame of its own for, which one that is not Spark's cannot have.
JAVA_FRAME = "_jdf"

#: Errors of a call into the JVM. One that is gone cannot be reached any more, and holds nothing.
JVM_ERRORS = (Py4JError, OSError)


def submitted_settings() -> dict[str, str]:
    """What ``spark-submit`` was told, the master included, before there is a session."""
    SparkContext._ensure_initialized()
    return dict(SparkConf().getAll())


def session_of_this_process() -> SparkSession | None:
    """The program's session, whichever thread asks; None when the application has ended."""
    session = SparkSession._instantiatedSession
    return None if session is None or session.sparkContext._jsc is None else session


def has_class(session: SparkSession, name: str) -> bool:
    """Whether the JVM of the driver has a class."""
    java: Any = session.sparkContext._jvm
    try:
        java.org.apache.spark.util.Utils.classForName(name, False, True)
    except JVM_ERRORS:
        return False
    return True
