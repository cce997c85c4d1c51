"""Two jobs that fail in a task, where Spark is told to try a task four times: ``retried_program.py DIRECTORY``.

Prints of each job what it failed with.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from holdfast.common import Configuration, Types
from holdfast.datastream import RuntimeContext, StreamExecutionEnvironment
from holdfast.datastream.functions import KeyedProcessFunction, MapFunction
from holdfast.datastream.state import ValueStateDescriptor
from holdfast.errors import JobExecutionError


class Raises(MapFunction):
    """Notes that it was called, and raises."""

    def __init__(self, calls: Path) -> None:
        self.calls = calls

    def map(self, value: Any) -> Any:
        note(self.calls)
        raise ValueError("no")


class OpensItsStore(KeyedProcessFunction):
    """Notes that it was opened, and is given a wrong value for its state."""

    def __init__(self, calls: Path) -> None:
        self.calls = calls

    def open(self, runtime_context: RuntimeContext) -> None:
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        note(self.calls)
        self.total.update("a text")


def note(calls: Path) -> None:
    with calls.open("a") as file:
        file.write(f"{os.getpid()}\n")


def main(directory: Path) -> None:
    settings = {
        "spark.master": "local[2,4]",
        "spark.driver.host": "127.0.0.1",
        "restart-strategy.type": "none",
        "holdfast.state.local-dir": str(directory / "local"),
    }
    for name, function in (("function", Raises), ("state", OpensItsStore)):
        env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
        numbers = env.set_parallelism(1).from_collection([1], Types.LONG()).key_by(lambda n: n, Types.LONG())
        calls = directory / name
        stream = numbers.map(function(calls)) if function is Raises else numbers.process(function(calls))
        stream.print()
        try:
            env.execute(name)
        except JobExecutionError as error:
            print(f"{name}: {type(error.__cause__).__name__}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
