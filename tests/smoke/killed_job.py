"""Numbers counted by key, by a job of whose workers one is killed once. ``killed_job.py DIRECTORY`` runs it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from holdfast.common import Types, WatermarkStrategy
from holdfast.datastream import FlatMapFunction, RuntimeContext
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.datastream.connectors.number_seq import NumberSequenceSource
from holdfast.datastream.state import ValueStateDescriptor
from tests.integration.programs import environment

ROWS, KEYS, VICTIM = 1_200, 11, 700
OUT = Types.ROW_NAMED(["number", "place"], [Types.LONG(), Types.LONG()])

where = Path(sys.argv[1])
killed = str(where / "killed")


class Place(FlatMapFunction):
    """(number, its place among the numbers of its key). The first worker that comes by the victim dies of it."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.LONG()))

    def flat_map(self, value: int) -> Iterator[tuple[int, int]]:
        if value == VICTIM and not os.path.exists(killed):
            os.close(os.open(killed, os.O_CREAT))
            os.kill(os.getpid(), signal.SIGKILL)
        place = (self.seen.value() or 0) + 1
        self.seen.update(place)
        yield value, place


if __name__ == "__main__":
    settings = {
        "holdfast.state.local-dir": str(where / "local"),
        # Some epochs, and a checkpoint in each.
        "holdfast.epoch.max-rows": "200",
        "execution.checkpointing.interval": "10 ms",
        "execution.checkpointing.dir": str(where / "checkpoints"),
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "3",
        "restart-strategy.fixed-delay.delay": "10 ms",
    }
    env = environment(**settings)
    source = NumberSequenceSource(0, ROWS - 1)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    keyed = numbers.key_by(lambda number: number % KEYS, Types.LONG())
    keyed.flat_map(Place(), OUT).sink_to(FileSink.json(str(where / "out")))
    print(f"restarts={env.execute('killed').get_history().restarts}")
