"""Drives sources as a job would: epochs of any size, readers that travel, failures, other parallelism."""

from __future__ import annotations

import math
import pickle
import random
from collections.abc import Callable
from typing import Any

from holdfast.runtime.batch import Batch
from holdfast.runtime.source import ReaderContext, ReadLimit, Source, SourceReader
from holdfast.state.serializers import serializer_for
from holdfast.types.resolve import resolve


def limit_of(rows: int) -> ReadLimit:
    return ReadLimit(rows, math.inf)


def read_epoch(reader: SourceReader, rows: int = 1 << 30) -> list[Any]:
    """The rows of one epoch; no batch may be empty and all together must keep the limit."""
    batches: list[Batch] = list(reader.read(limit_of(rows)))
    assert all(0 < len(batch) <= 65_536 for batch in batches)
    values = [value for batch in batches for value in batch.values]
    assert len(values) <= rows
    return values


def read_all(readers: list[SourceReader]) -> list[Any]:
    return [value for reader in readers for value in read_epoch(reader)]


def readers_of(source: Source, parallelism: int, restored: list[Any] | None = None) -> list[SourceReader]:
    """Readers of a source that travelled, from positions that a checkpoint stores and gives back."""
    travelled: Source = pickle.loads(pickle.dumps(source))
    if restored is not None:
        serializer = serializer_for(resolve(source.position_type()))
        restored = serializer.decode_many(serializer.encode_many(restored))
    return [travelled.create_reader(ReaderContext(subtask, parallelism, restored)) for subtask in range(parallelism)]


def positions_of(readers: list[SourceReader]) -> list[Any]:
    """The union of all positions."""
    return [position for reader in readers for position in reader.positions()]


def run_with_failures(
    source: Source,
    rng: random.Random,
    *,
    epoch_rows: int,
    max_parallelism: int = 5,
    between: Callable[[int], None] = lambda epoch: None,
    enough: Callable[[list[Any]], bool] = lambda rows: False,
) -> list[Any]:
    """All rows that a job with checkpoints and failures delivers, until its source has ended or there are enough."""
    readers = readers_of(source, rng.randint(1, max_parallelism))
    checkpoint: list[Any] | None = None
    delivered: list[Any] = []
    since_checkpoint: list[Any] = []
    for epoch in range(10_000):
        between(epoch)
        for number, reader in enumerate(readers):
            since_checkpoint += read_epoch(reader, rng.randint(0, epoch_rows))
            if rng.random() < 0.5:
                readers[number] = pickle.loads(pickle.dumps(reader))
        ended = all(reader.ended for reader in readers) or enough(delivered + since_checkpoint)
        if ended or rng.random() < 0.3:
            checkpoint = positions_of(readers)
            delivered += since_checkpoint
            since_checkpoint = []
        if ended:
            return delivered
        if rng.random() < 0.15:
            for reader in readers:
                reader.close()
            since_checkpoint = []
            readers = readers_of(source, rng.randint(1, max_parallelism), checkpoint)
    raise AssertionError("the source did not end")
