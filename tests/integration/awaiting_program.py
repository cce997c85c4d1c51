"""An application that loses an executor twice, and waits for another one: ``awaiting_program.py SETTINGS``."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Mapping

from pyspark.sql import SparkSession

from holdfast.spark.accelerations import Accelerations
from holdfast.spark.executors import ExecutorWait, executors_of
from holdfast.types.settings import SparkSettings

#: Longer than the test has patience for.
WAIT_SECONDS = 300.0


def main(settings: Mapping[str, str]) -> None:
    logging.basicConfig(stream=sys.stdout, level=logging.WARNING)
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    accelerations = Accelerations.of(session, SparkSettings())
    wait = ExecutorWait(session, accelerations, WAIT_SECONDS, time.sleep)
    wait.again(2)
    for number in range(2):
        before = executors_of(session, accelerations)
        print(f"{number}: two are there", flush=True)
        while before <= executors_of(session, accelerations):
            time.sleep(0.05)
        print(f"after a loss there are {wait.again(2)}", flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
