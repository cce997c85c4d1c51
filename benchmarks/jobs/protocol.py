"""What a benchmark job is given on its command line and what it leaves behind for the harness."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

#: The same for every job, Holdfast's included. Adaptive execution is off because it merges small shuffle partitions.
SPARK_SETTINGS = {
    "spark.master": "local[2]",
    "spark.driver.memory": "2g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
}


@dataclass(frozen=True)
class Epoch:
    """One epoch or micro-batch, with seconds since 1970."""

    epoch: int
    rows: int
    started: float
    finished: float


@dataclass(frozen=True)
class JobArguments:
    """Where the events are, where files may be written, which form of the job to run, and where the outcome goes."""

    data: Path
    scratch: Path
    epoch_rows: int
    variant: str
    result: Path

    @classmethod
    def parse(cls) -> JobArguments:
        parser = argparse.ArgumentParser()
        parser.add_argument("--data", type=Path, required=True)
        parser.add_argument("--scratch", type=Path, required=True)
        parser.add_argument("--epoch-rows", type=int, required=True)
        parser.add_argument("--variant", default="")
        parser.add_argument("--result", type=Path, required=True)
        return cls(**vars(parser.parse_args()))

    def command(self) -> list[str]:
        """The command line that parses to these arguments."""
        pairs = {"data": self.data, "scratch": self.scratch, "epoch-rows": self.epoch_rows, "result": self.result}
        return [f"--{name}={value}" for name, value in pairs.items()] + [f"--variant={self.variant}"]


@dataclass(frozen=True)
class Outcome:
    """The epochs of one run, and how many rows it emitted if the job can tell."""

    epochs: Sequence[Epoch]
    emitted: int | None = None

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, path: Path) -> Outcome:
        content = json.loads(path.read_text())
        return cls([Epoch(**entry) for entry in content["epochs"]], content["emitted"])
