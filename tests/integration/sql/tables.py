"""One run of ``sql_job``: the tables that it fills, and what must be in them."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from holdfast.testing.chaos import Oracle, Program
from tests.kit.driver import DriverProgram, program
from tests.kit.faults import FaultPlan
from tests.kit.postgres import PostgresServer

PROGRAM = Path(__file__).with_name("sql_job.py")


class Job:
    def __init__(self, postgres: PostgresServer, directory: Path, rows: int, keys: int) -> None:
        self.postgres = postgres
        self.directory = directory
        self.rows, self.keys = rows, keys
        unique = uuid.uuid4().hex[:8]
        self.all, self.last = f"all_{unique}", f"last_{unique}"
        # Without a key: whatever is written twice is there twice.
        postgres.query(f"CREATE TABLE {self.all} (k BIGINT, place BIGINT)")
        postgres.query(f"CREATE TABLE {self.last} (k BIGINT PRIMARY KEY, place BIGINT)")
        self._runs = 0

    def driver(self, faults: FaultPlan | None = None, **given: object) -> DriverProgram:
        self._runs += 1
        return DriverProgram(
            PROGRAM,
            self._arguments(given),
            self.directory / f"log-{self._runs}",
            faults.environment if faults is not None else {},
        )

    def program(self, name: str, settings: Mapping[str, str], **given: object) -> Program:
        """For a chaos run."""
        return program(name, PROGRAM, self._arguments({"settings": settings, **given}), self.directory)

    def oracle(self) -> Oracle:
        return Oracle(
            rows_in=lambda: range(self.rows),
            rows_out=lambda: self.postgres.query(f"SELECT k, place FROM {self.all}"),
            expected=self._places,
            check=self._check_rest,
            progress=lambda: self.postgres.query(f"SELECT count(*) FROM {self.all}"),
        )

    def check(self) -> None:
        verdict = self.oracle().judge()
        assert verdict.exactly_once, verdict
        self._check_rest()

    def _places(self, numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
        for key, count in Counter(number % self.keys for number in numbers).items():
            yield from ((key, place + 1) for place in range(count))

    def _check_rest(self) -> None:
        counts = Counter(number % self.keys for number in range(self.rows))
        assert dict(self.postgres.query(f"SELECT k, place FROM {self.last}")) == counts
        assert not list((self.directory / "checkpoints").rglob("*.records")), "files are left"
        owners = self.postgres.query("SELECT job_id, count(*) FROM holdfast_ledger GROUP BY job_id")
        assert ("sql", 2) in owners

    def _arguments(self, given: Mapping[str, object]) -> list[str]:
        tables = {"url": self.postgres.url(), "all": self.all, "last": self.last, "rows": self.rows}
        return [str(self.directory), json.dumps({"settings": {}, "keys": self.keys, **tables, **given})]
