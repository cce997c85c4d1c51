"""What the digests cost by which local recovery verifies a store: CPU time of an epoch with a checkpoint, with them and
without. A whole job in one process, without Spark; every row changes another key. Epochs with and without digests take
turns in one job, in an order that is drawn for each two of them. Beside that, what it would cost to verify an LMDB
store whenever another process opens it: to read all of its entries.

Run: python -m benchmarks.digests [--keys N] [--epochs N] [backend ...]
"""

from __future__ import annotations

import argparse
import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any
from unittest.mock import patch

from holdfast.common import Configuration, Types, WatermarkStrategy
from holdfast.connectors.discard import DiscardSink
from holdfast.connectors.sequence import NumberSequenceSource
from holdfast.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from holdfast.datastream.state import ValueStateDescriptor
from holdfast.runtime.epoch import EpochSpec
from holdfast.state import epoch_log
from holdfast.state.backends import load_backend
from holdfast.state.heap import files as heap_files
from holdfast.state.lmdb import environments
from holdfast.state.lmdb import store as lmdb_store
from holdfast.state.lmdb.meta import content_digest
from holdfast.state.rocksdb import images as rocksdb_images
from holdfast.state.store import Stamp
from holdfast.testing.in_process import InProcessEngine

BACKENDS = ("heap", "lmdb", "rocksdb")
#: Epochs at first: state is made, code is warm, files are as many as they become.
SETTLED = 20
#: Entries of stores that are read through.
WHOLE = (30_000, 1_000_000)
PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])
#: Modules, their functions that make digests, and what those give while there are none. What is read while the job
#: runs is not compared then: an epoch without digests left some.
_FOLLOWED = ("with_change", "with_entries", "without_entries")
_WITHOUT: list[tuple[Any, str, Callable[..., Any]]] = [
    *((lmdb_store, name, lambda digest, *changes: digest) for name in _FOLLOWED),
    *((module, "with_digest", lambda data, *name: data + bytes(8)) for module in (epoch_log, heap_files)),
    (rocksdb_images.LocalImage, "take_checksums", lambda image, known: None),
    (rocksdb_images.LocalImage, "known_of", lambda image, base: {}),
]
_READ: list[Any] = [epoch_log, heap_files]


class Digests:
    """Whether digests are made, and how long a processor was at it."""

    def __init__(self) -> None:
        self.on = True
        self.seconds = 0.0

    @contextmanager
    def switched(self) -> Iterator[None]:
        """While the block runs, ``on`` counts."""
        patches = [patch.object(place, name, self._choice(getattr(place, name), off)) for place, name, off in _WITHOUT]
        patches += [patch.object(module, "without_digest", lambda data, *where: data[:-8]) for module in _READ]
        for each in patches:
            each.start()
        try:
            yield
        finally:
            for each in patches:
                each.stop()

    def _choice(self, made: Callable[..., Any], off: Callable[..., Any]) -> Callable[..., Any]:
        def chosen(*arguments: Any) -> Any:
            if not self.on:
                return off(*arguments)
            began = time.thread_time()
            try:
                return made(*arguments)
            finally:
                self.seconds += time.thread_time() - began

        return chosen


class Meter:
    """CPU time of this process from one epoch to the next, of epochs with digests and without."""

    def __init__(self, digests: Digests, seed: int) -> None:
        self.digests = digests
        self.seconds: dict[bool, list[float]] = {True: [], False: []}
        #: Of epochs with digests, the part in which they were made.
        self.shares: list[float] = []
        self._random = random.Random(seed)
        self._began: float | None = None
        self._next: list[bool] = []

    def begin_epoch(self, spec: EpochSpec) -> None:
        now = time.process_time()
        if self._began is not None and spec.epoch > SETTLED:
            self.seconds[self.digests.on].append(now - self._began)
            if self.digests.on:
                self.shares.append(self.digests.seconds / (now - self._began))
        if spec.checkpoint is None:
            # The job has ended, or its checkpoint was not stored in time.
            self._began = None
            return
        if not self._next:
            self._next = self._random.sample([True, False], 2)
        self.digests.on, self.digests.seconds = self._next.pop(), 0.0
        self._began = time.process_time()

    def end_epoch(self, spec: EpochSpec) -> None:
        """What stores the checkpoint is of its epoch."""
        for thread in threading.enumerate():
            if thread.name.startswith("upload-"):
                thread.join()


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", PAIR))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> None:
        rows, last = self.count.value() or (0, 0)
        self.count.update((rows + 1, max(last, value)))


def run(backend: str, keys: int, epochs: int, directory: Path, meter: Meter) -> None:
    settings = {
        "parallelism.default": "1",
        "state.backend.type": backend,
        "holdfast.state.local-dir": str(directory / "local"),
        "execution.checkpointing.dir": str(directory / "checkpoints"),
        "execution.checkpointing.interval": "10 ms",
        "execution.checkpointing.incremental": "true",
        "holdfast.epoch.max-rows": str(keys),
        # An epoch whose checkpoint is not stored in time is none of those that count.
        "execution.checkpointing.tolerable-failed-checkpoints": "1000000",
        "restart-strategy.type": "none",
    }
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    source = NumberSequenceSource(0, keys * (SETTLED + 2 * epochs + 1) - 1)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    counts = numbers.key_by(lambda number: number % keys, Types.LONG()).process(Count(), PAIR)
    counts.sink_to(DiscardSink())
    with meter.digests.switched(), _engine(meter).installed():
        env.execute("digests")


def _engine(meter: Meter) -> InProcessEngine:
    return InProcessEngine(before_epoch=meter.begin_epoch, after_epoch=meter.end_epoch)


def report(backend: str, meter: Meter) -> None:
    """By the quickest quarter of each: what else the machine does makes epochs slower, and none quicker. What was spent
    inside of digests is a second figure, which other work on the machine blurs less.
    """
    seconds = meter.seconds
    quickest = {on: sorted(found)[: max(1, len(found) // 4)] for on, found in seconds.items()}
    with_, without = mean(quickest[True]), mean(quickest[False])
    error = sum(stdev(each) ** 2 / len(each) for each in quickest.values()) ** 0.5
    print(
        f"{backend:8} {with_ * 1e3:8.1f} ms with digests, {without * 1e3:8.1f} ms without: "
        f"{(with_ - without) / with_:6.2%} ± {error / with_:.2%}, "
        f"{median(meter.shares):6.2%} inside of digests, median of {len(meter.shares)}",
        flush=True,
    )


def report_whole_reads() -> None:
    for keys in WHOLE:
        with tempfile.TemporaryDirectory(prefix="holdfast-digests-") as directory:
            store = load_backend("lmdb", {}).open(Path(directory))
            entries = [(number.to_bytes(10, "big"), number.to_bytes(20, "big")) for number in range(keys)]
            store.load([entries], Stamp(0, "bench"))
            store.close()
            environment = environments.acquire(Path(directory), 1 << 30)
            with environment.handle.begin() as txn:
                began = time.process_time()
                assert content_digest(txn, environment.data) is not None
                took = time.process_time() - began
            environments.release(environment)
        print(f"lmdb     {took * 1e3:8.1f} ms to read {keys:,} entries and compare their digest", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=30_000)
    parser.add_argument("--epochs", type=int, default=100, help="with digests, and as many without")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("backend", nargs="*", default=BACKENDS)
    options = parser.parse_args()
    for backend in options.backend:
        meter = Meter(Digests(), options.seed)
        with tempfile.TemporaryDirectory(prefix="holdfast-digests-") as directory:
            run(backend, options.keys, options.epochs, Path(directory), meter)
        report(backend, meter)
    if "lmdb" in options.backend:
        report_whole_reads()


if __name__ == "__main__":
    main()
