"""Made-up sensors: a thread that puts files of readings into a directory, as some other system would."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

#: What the columns of an input file are. A reading is in thousandths of a degree.
SCHEMA = "sensor BIGINT, reading BIGINT"
#: Its appearance says that no file will follow. Readers of directories leave out names that begin with an underscore.
END_MARKER = "_END"
#: What the job makes of it: a result after so many readings of a sensor.
READINGS_PER_RESULT = 10
RESULT_SCHEMA = "sensor BIGINT, count BIGINT, average DOUBLE"

_FILES_PER_SECOND = 4


class SensorFeed:
    """Writes files until ``end`` is called, then the marker. Each appears whole, by a rename."""

    def __init__(self, directory: Path, events_per_second: int, sensors: int, seed: int) -> None:
        self._directory = directory
        self._rows = max(1, events_per_second // _FILES_PER_SECOND)
        self._sensors = sensors
        self._random = np.random.default_rng(seed)
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sensor-feed", daemon=True)
        self._files = 0

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Let the input end after the file that is being written."""
        self._ending.set()

    @property
    def events(self) -> int:
        """Events written so far."""
        return self._files * self._rows

    def _run(self) -> None:
        started = time.monotonic()
        while not self._ending.is_set():
            self._write_file()
            # By the clock and not by a fixed pause, so that a slow disk does not slow the sensors down.
            next_at = started + self._files / _FILES_PER_SECOND
            self._ending.wait(max(0.0, next_at - time.monotonic()))
        (self._directory / END_MARKER).touch()

    def _write_file(self) -> None:
        columns = {
            "sensor": self._random.integers(0, self._sensors, self._rows),
            "reading": self._random.normal(20_000, 4_000, self._rows).astype(np.int64),
        }
        name = f"events-{self._files:06d}.parquet"
        hidden = self._directory / f".{name}"
        pq.write_table(pa.table(columns), hidden)
        os.replace(hidden, self._directory / name)
        self._files += 1
