"""Workers of a job that runs for long do not grow."""

from __future__ import annotations

import os
import resource
from itertools import groupby
from operator import itemgetter
from typing import Any

import pytest

from holdfast.common import Types
from tests.integration.programs import environment

pytestmark = [pytest.mark.usefixtures("spark"), pytest.mark.slow]

EPOCHS, ROWS_OF_EPOCH, ROW_BYTES = 50, 20, 400_000
#: A worker gets half of the rows.
EXCHANGED_MB = EPOCHS * ROWS_OF_EPOCH * ROW_BYTES / 2 / 1e6
KIND = Types.TUPLE([Types.LONG(), Types.BYTES()])
SEEN = Types.TUPLE([Types.INT(), Types.LONG(), Types.LONG()])


def memory_of_process(row: Any) -> tuple[int, int, int]:
    """The process, the number of the row, and the most memory so far in kilobytes."""
    return os.getpid(), row[0], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def test_workers_let_go_of_rows_that_they_have_exchanged() -> None:
    env = environment(**{"holdfast.epoch.max-rows": str(ROWS_OF_EPOCH), "parallelism.default": "2"})
    numbers = env.from_collection(list(range(EPOCHS * ROWS_OF_EPOCH)), Types.LONG())
    large = numbers.map(lambda number: (number, bytes(ROW_BYTES)), KIND)
    seen = large.key_by(lambda row: row[0] % 16, Types.LONG()).map(memory_of_process, SEEN)
    found = sorted(seen.execute_and_collect())
    assert len(found) == EPOCHS * ROWS_OF_EPOCH
    for _, rows in groupby(found, itemgetter(0)):
        memory = [kilobytes / 1000 for _, _, kilobytes in rows]
        # The first epochs fill buffers and caches.
        assert memory[-1] - memory[len(memory) // 4] < EXCHANGED_MB / 4, memory[:: len(memory) // 10]
