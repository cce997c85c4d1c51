"""A job whose output tells whether any row was lost, repeated, or computed twice and mixed. Runs as a driver program.

    numbers -> key_by(n % keys) -> Stamp -> sink "first"
                                         -> key_by(token % 5) -> Tally -> sink "second"

``Stamp`` gives each number its place among the numbers of its key, from keyed state, and a random token. ``Tally``
counts tokens in keyed state. Three levels; slices of random size, so that an epoch's number never means the same rows
twice.
"""

from __future__ import annotations

import json
import logging
import random
import secrets
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

from holdfast.common import Configuration, Types, WatermarkStrategy
from holdfast.connectors.sequence import NumberSequenceSource
from holdfast.datastream import FlatMapFunction, RuntimeContext, StreamExecutionEnvironment
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from holdfast.errors import JobEndedError
from holdfast.runtime.batch import Batch
from holdfast.runtime.source import ReaderContext, ReadLimit, Source, SourceReader, WrappingReader
from holdfast.testing.in_process import InProcessEngine
from tests.kit.rescaled import parallelism_of_this_start


class UnevenReader(WrappingReader):
    """Reads slices of random size from another reader."""

    def __init__(self, reader: SourceReader, largest: int) -> None:
        super().__init__(reader)
        self._largest = largest

    def read(self, limit: ReadLimit) -> Iterator[Batch]:
        return super().read(ReadLimit(secrets.randbelow(self._largest), limit.deadline))


class UnevenNumbers(Source):
    bounded = True

    def __init__(self, count: int, largest: int) -> None:
        self._numbers = NumberSequenceSource(0, count - 1)
        self._largest = largest

    def output_type(self) -> Any:
        return self._numbers.output_type()

    def position_type(self) -> Any:
        return self._numbers.position_type()

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return UnevenReader(self._numbers.create_reader(context), self._largest)


class Stamp(FlatMapFunction):
    """(number, key, place among the key's numbers, token). Three kinds of state count the same, and must agree."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.place = runtime_context.get_state(ValueStateDescriptor("place", Types.LONG()))
        self.recent = runtime_context.get_list_state(ListStateDescriptor("recent", Types.LONG()))
        self.by_digit = runtime_context.get_map_state(MapStateDescriptor("digits", Types.INT(), Types.LONG()))
        self.random = random.Random()

    def flat_map(self, value: int) -> Iterable[tuple[int, int, int, int]]:
        place = (self.place.value() or 0) + 1
        self.place.update(place)
        digit = value % 3
        self.by_digit.put(digit, (self.by_digit.get(digit) or 0) + 1)
        self.recent.add(value)
        if place % 10 == 0:
            assert len(list(self.recent)) == 10, (value, list(self.recent))
            assert sum(self.by_digit.values()) == place
            self.recent.clear()
        token = self.random.getrandbits(40) ^ time.time_ns() & 0xFF
        yield value, place, token, digit


class Tally(FlatMapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def flat_map(self, value: tuple[int, int, int, int]) -> Iterable[tuple[int, int]]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value[2], count


def program(
    directory: Path | str, settings: dict[str, str], rows: int, keys: int, largest: int | None = None
) -> StreamExecutionEnvironment:
    """The job, with its files in a directory, of any storage. ``largest`` is the size that no slice reaches."""
    configuration = Configuration.from_dict(
        {
            "holdfast.job-id": "audited",
            "execution.checkpointing.dir": f"{directory}/checkpoints",
            "execution.checkpointing.interval": "1200 ms",
            "execution.checkpointing.num-retained": "2",
            "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": "20",
            "restart-strategy.fixed-delay.delay": "100 ms",
            "parallelism.default": parallelism_of_this_start(),
            **settings,
        }
    )
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    quadruple = Types.TUPLE([Types.LONG(), Types.LONG(), Types.LONG(), Types.LONG()])
    numbers = env.from_source(
        UnevenNumbers(rows, largest or max(2, rows // 8)), WatermarkStrategy.no_watermarks(), "numbers"
    ).uid("numbers")
    stamped = numbers.key_by(lambda n: n % keys).flat_map(Stamp(), quadruple).uid("stamp")
    stamped.sink_to(FileSink.json(f"{directory}/first")).uid("first")
    tallied = (
        stamped.key_by(lambda row: row[2] % 5).flat_map(Tally(), Types.TUPLE([Types.LONG(), Types.LONG()])).uid("tally")
    )
    tallied.sink_to(FileSink.json(f"{directory}/second")).uid("second")
    return env


def run(directory: Path | str, settings: dict[str, str], rows: int, keys: int, largest: int | None = None) -> Any:
    """Run the job to its end; the history of its course."""
    return program(directory, settings, rows, keys, largest).execute("audited").get_history()


def published(directory: Path) -> list[tuple[int, ...]]:
    """All rows that a reader of the directory sees."""
    files = [path for path in sorted(directory.glob("*")) if path.is_file() and path.name[0] not in "._"]
    return [tuple(json.loads(line).values()) for path in files for line in path.read_text().splitlines()]


def audit(directory: Path, rows: int, keys: int) -> None:
    """Compare what was published with what must have been; AssertionError says what is wrong."""
    first, second = published(directory / "first"), published(directory / "second")
    numbers = Counter(row[0] for row in first)
    repeated = [number for number, count in numbers.items() if count > 1]
    lost = [number for number in range(rows) if number not in numbers]
    assert not repeated and not lost, f"{len(lost)} lost {lost[:5]}, {len(repeated)} repeated {repeated[:5]}"
    places: dict[int, set[int]] = defaultdict(set)
    for number, place, _, _ in first:
        places[number % keys].add(place)
    for key, seen in places.items():
        assert seen == set(range(1, len(seen) + 1)), f"places of key {key} are not one after the other"
    assert Counter(row[2] for row in first) == Counter(row[0] for row in second), (
        "two executions of a subtask were mixed"
    )
    counts: dict[int, set[int]] = defaultdict(set)
    for token, count in second:
        counts[token % 5].add(count)
    for key, seen in counts.items():
        assert seen == set(range(1, len(seen) + 1)), f"counts of token class {key} are not one after the other"
    assert not [p for p in (directory / "first" / "_holdfast_staging").rglob("*") if p.is_file()], (
        "staged files are left"
    )


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    logging.getLogger("py4j").setLevel(logging.ERROR)
    where, given = Path(sys.argv[1]), json.loads(sys.argv[2])
    # "without-spark": tasks are run by this process, and die with it.
    engine = InProcessEngine().installed() if given.get("without-spark") else nullcontext()
    restarts = 0
    # A driver that was killed may have got to the end of the job.
    with engine, suppress(JobEndedError):
        restarts = run(where, given["settings"], given["rows"], given["keys"], given.get("largest")).restarts
    print(f"FINISHED restarts={restarts}", flush=True)
