"""How an epoch's spec reaches its tasks: as a property of the Spark job.

The functions of the levels stay the same for a whole attempt, so that they are pickled and the plan is analysed once;
what changes with every epoch travels beside them. A task that got the spec of another epoch is found out: stamps,
barriers and acknowledgements carry the epoch's number.
"""

from __future__ import annotations

import base64

import cloudpickle
from pyspark import TaskContext
from pyspark.sql import SparkSession

from holdfast.errors import EpochError
from holdfast.runtime.epoch import EpochSpec

_PROPERTY = "holdfast.epoch"


def announce_epoch(session: SparkSession, spec: EpochSpec | None) -> None:
    """Give the jobs that this thread starts from now on their spec; None ends it."""
    text = None if spec is None else base64.b64encode(cloudpickle.dumps(spec)).decode()
    session.sparkContext.setLocalProperty(_PROPERTY, text)  # type: ignore[arg-type]  # None removes it


def announced_epoch(context: TaskContext) -> EpochSpec:
    """In a task: the spec of the epoch that it belongs to."""
    text = context.getLocalProperty(_PROPERTY)
    if text is None:
        raise EpochError(
            "The task does not know its epoch: the properties of the Spark job did not reach it. Threads of the driver "
            "must be pinned to those of the JVM: remove PYSPARK_PIN_THREAD=false from the environment."
        )
    spec: EpochSpec = cloudpickle.loads(base64.b64decode(text))
    return spec
