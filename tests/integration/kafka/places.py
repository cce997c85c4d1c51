"""One run of ``kafka_job``: the topics that it reads and writes, and what must be in them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from holdfast.testing.chaos import Oracle, Program
from tests.integration.kafka.kafka_job import expected
from tests.kit.driver import DriverProgram, program
from tests.kit.faults import FaultPlan
from tests.kit.kafka import KafkaBroker

PROGRAM = Path(__file__).with_name("kafka_job.py")
PARTITIONS = 4


class Job:
    def __init__(self, kafka: KafkaBroker, topic: Callable[..., str], directory: Path, rows: int, keys: int) -> None:
        self.kafka = kafka
        self.directory = directory
        self.rows, self.keys = rows, keys
        self.input, self.output = topic(PARTITIONS), topic(PARTITIONS)
        self._runs = 0
        kafka.produce(self.input, (str(number) for number in range(rows)))

    def driver(self, faults: FaultPlan | None = None, **given: object) -> DriverProgram:
        self._runs += 1
        return DriverProgram(
            PROGRAM,
            self._arguments(given),
            self.directory / f"log-{self._runs}",
            faults.environment if faults is not None else {},
        )

    def program(self, name: str, settings: Mapping[str, str], **given: object) -> Program:
        """For a chaos run on Spark."""
        on_spark = {"spark.master": "local[2]", "spark.ui.enabled": "false", **settings}
        return program(name, PROGRAM, self._arguments({"settings": on_spark, **given}), self.directory)

    def oracle(self) -> Oracle:
        """What a ``read_committed`` consumer sees."""
        return Oracle(
            rows_in=lambda: range(self.rows),
            rows_out=lambda: self.kafka.committed(self.output, PARTITIONS),
            expected=lambda rows: expected(len(rows), self.keys).elements(),
            check=self.check_files,
            progress=lambda: self.kafka.end_offsets(self.output, PARTITIONS),
        )

    def check(self) -> None:
        verdict = self.oracle().judge()
        assert verdict.exactly_once, verdict
        self.check_files()

    def check_files(self) -> None:
        assert not [path for path in (self.directory / "checkpoints").rglob("*.records")], "files are left"

    def _arguments(self, given: Mapping[str, object]) -> list[str]:
        topics = {"servers": self.kafka.servers, "input": self.input, "output": self.output, "keys": self.keys}
        return [str(self.directory), json.dumps({"settings": {}, **topics, **given})]
