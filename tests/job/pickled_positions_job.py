"""A job whose sources kept pickled positions before they declared types, for snapshots that were written then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from holdfast.common import Types, WatermarkStrategy
from holdfast.common.job_client import JobClient
from holdfast.connectors.sequence import NumberSequenceSource
from holdfast.runtime.sink import TwoPhaseCommitSink
from holdfast.testing import TestSource
from tests.integration.programs import PAIR, environment

NUMBERS = 200
LETTERS = 60
ITEMS = 60
KEYS = 7


def start(directory: Path, sink: TwoPhaseCommitSink, **settings: Any) -> JobClient:
    """Count numbers of three kinds of sources by their remainder, with a checkpoint in every epoch."""
    env = environment(
        **{
            "holdfast.job-id": "job",
            "holdfast.state.local-dir": str(directory / "local"),
            "holdfast.epoch.idle-wait": "1 ms",
            "holdfast.epoch.max-rows": "20",
            "holdfast.checkpoint.upload-wait": "60 s",
            "execution.checkpointing.interval": "10 ms",
            "execution.checkpointing.dir": str(directory / "chk"),
            "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
            **settings,
        }
    )
    untimed = WatermarkStrategy.no_watermarks()
    numbers = env.from_source(NumberSequenceSource(0, NUMBERS - 1), untimed, "numbers").uid("numbers")
    letters = env.from_collection(list(range(LETTERS)), type_info=Types.LONG()).uid("letters")
    items = [*range(ITEMS), TestSource.END]
    scripted = env.from_source(TestSource(items, Types.LONG()), untimed, "items").uid("items")
    keyed = numbers.union(letters, scripted).key_by(lambda number: number % KEYS, Types.LONG())
    counts = keyed.map_with_state(count, state_type=int, output_type=PAIR).uid("count")
    counts.sink_to(sink).uid("sink")
    return env.execute_async("positions")


def count(number: int, seen: int | None) -> tuple[tuple[int, int], int]:
    return (number % KEYS, (seen or 0) + 1), (seen or 0) + 1


def expected() -> list[tuple[int, int]]:
    """All that the job publishes, sorted."""
    rows = [number % KEYS for length in (NUMBERS, LETTERS, ITEMS) for number in range(length)]
    return sorted((key, seen) for key in range(KEYS) for seen in range(1, rows.count(key) + 1))
