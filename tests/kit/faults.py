"""Faults for one test: which failpoints act, and whether they did."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from holdfast import failpoints
from holdfast.failpoints import ENVIRONMENT_VARIABLE, Trigger
from holdfast.testing.chaos.processes import wait_until


class FaultPlan:
    """Failpoint triggers in a directory of their own. Add them all before the job starts."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._triggers: list[Trigger] = []
        self._write()

    def add(self, point: str, action: str, hit: int = 1, **when: Any) -> Trigger:
        """At ``point``, when the facts match, at the given hit: do ``action`` (see holdfast.failpoints)."""
        trigger = Trigger(f"{len(self._triggers)}-{point}", point, action, when, hit)
        self._triggers.append(trigger)
        self._write()
        return trigger

    @property
    def path(self) -> Path:
        return self._directory / "failpoints.json"

    @property
    def environment(self) -> dict[str, str]:
        """For a driver program; in local mode its workers inherit it."""
        return {ENVIRONMENT_VARIABLE: str(self.path)}

    @property
    def spark_settings(self) -> dict[str, str]:
        """For the executors of a cluster."""
        return {f"spark.executorEnv.{ENVIRONMENT_VARIABLE}": str(self.path)}

    @contextmanager
    def among(self, spark: Any) -> Iterator[None]:
        """In this process and in the workers of jobs that begin meanwhile in its session. What kills there must be a
        point of tasks: the driver is the test.
        """
        # Spark starts processes with these variables for the functions that are made from now on, and keeps them apart.
        of_workers = spark.sparkContext.environment
        of_workers[ENVIRONMENT_VARIABLE] = str(self.path)
        failpoints.install(self.path)
        try:
            yield
        finally:
            failpoints.install(None)
            del of_workers[ENVIRONMENT_VARIABLE]

    def reached(self, trigger: Trigger) -> dict[str, Any] | None:
        """Process id and facts of the pass that triggered, or None."""
        marker = self._directory / f"{trigger.id}.{trigger.hit}"
        if not marker.exists():
            return None
        content: dict[str, Any] = json.loads(marker.read_text())
        return content

    def wait(self, trigger: Trigger, timeout: float = 60.0) -> dict[str, Any]:
        return wait_until(lambda: self.reached(trigger), timeout, f"failpoint {trigger.point} ({trigger.id})")

    def release(self, trigger: Trigger) -> None:
        """Let go of a process that a ``hold`` keeps."""
        (self._directory / f"{trigger.id}.release").touch()

    def all_reached(self) -> list[Trigger]:
        return [trigger for trigger in self._triggers if self.reached(trigger) is not None]

    def not_reached(self) -> list[Trigger]:
        """Triggers whose point nobody reached: a test that counts on them must fail."""
        return [trigger for trigger in self._triggers if self.reached(trigger) is None]

    def _write(self) -> None:
        entries = [
            {"id": t.id, "point": t.point, "action": t.action, "when": dict(t.when), "hit": t.hit}
            for t in self._triggers
        ]
        self.path.write_text(json.dumps({"directory": str(self._directory), "triggers": entries}))
