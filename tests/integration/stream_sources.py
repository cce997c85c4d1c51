"""A stream source of a user's, in Python."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from tests.integration.programs import published

TICKS = 40


class Ticks(DataSource):
    """Every micro-batch has the next ten numbers. Each commit is noted in the file of the option ``commits``, with the
    number of rows that were published in ``published`` by then.
    """

    @classmethod
    def name(cls) -> str:
        return "ticks"

    def schema(self) -> str:
        return "k long, v long"

    def streamReader(self, schema: Any) -> TickReader:
        return TickReader(self.options["commits"], self.options["published"])


class Numbers(InputPartition):
    def __init__(self, begin: int, end: int) -> None:
        super().__init__(None)
        self.begin, self.end = begin, end


class TickReader(DataSourceStreamReader):
    def __init__(self, commits: str, output: str) -> None:
        self.commits, self.output = commits, output
        self.offset = 0

    def initialOffset(self) -> dict[str, int]:
        return {"next": 0}

    def latestOffset(self) -> dict[str, int]:
        self.offset = min(self.offset + 10, TICKS)
        return {"next": self.offset}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[Numbers]:
        self.offset = max(self.offset, end["next"])
        middle = (start["next"] + end["next"]) // 2
        return [Numbers(start["next"], middle), Numbers(middle, end["next"])]

    def read(self, partition: Numbers) -> Iterator[tuple[int, int]]:
        for value in range(partition.begin, partition.end):
            yield value % 7, value

    def commit(self, end: dict[str, int]) -> None:
        with open(self.commits, "a") as file:
            file.write(f"{end['next']} {len(published(Path(self.output)))}\n")
