"""CPU costs of keyed state in one process: hits of the cache, first touches and flushes; and what it costs, in time,
that a store moves to another process.

Run: python benchmarks/micro_state.py [backend ...]
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

from holdfast.common.time import Time
from holdfast.state.backends import load_backend
from holdfast.state.descriptors import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from holdfast.state.keyed_backend import KeyedScope, KeyedStateBackend
from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.keys import KeyCodec
from holdfast.state.store import LocalStore, Stamp
from holdfast.state.timers import TimeDomain
from holdfast.state.ttl_config import StateTtlConfig
from holdfast.types.typeinfo import Types

KEYS = 100_000
SCOPE = KeyedScope("bench", KeyCodec.for_type(Types.LONG()), KeyGroupRange(0, 127), 128)
PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])


def report(name: str, seconds: float, times: int) -> None:
    per = seconds / times * 1e6
    print(f"  {name:<44} {per:8.3f} us" if per >= 1 else f"  {name:<44} {per * 1e3:8.0f} ns")


def timed(name: str, times: int, action: Callable[[], object]) -> None:
    started = time.process_time()
    action()
    report(name, time.process_time() - started, times)


def pair_state(ttl: bool) -> ValueStateDescriptor:
    descriptor = ValueStateDescriptor("expiring pair" if ttl else "pair", PAIR)
    if ttl:
        descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
    return descriptor


def hits(backend: KeyedStateBackend, ttl: bool = False) -> None:
    print(" the same key again" + (", with a time to live" if ttl else ""))
    state = backend.state(pair_state(ttl))
    context, keys = backend.context, list(range(KEYS))

    def loop(body: Callable[[], object] | None) -> float:
        started = time.process_time()
        for key in keys:
            context.key = key
            context.identity = key
            if body is not None:
                body()
        return time.process_time() - started

    value = (1, 2)
    loop(lambda: state.update(value))
    value_of, update = state.value, state.update

    def values() -> float:
        started = time.process_time()
        for key in keys:
            context.key = key
            context.identity = key
            value_of()
        return time.process_time() - started

    def updates() -> float:
        started = time.process_time()
        for key in keys:
            context.key = key
            context.identity = key
            update(value)
        return time.process_time() - started

    empty = min(loop(None) for _ in range(5))
    report("set the current key", empty, KEYS)
    report("value() on a hit", min(values() for _ in range(5)) - empty, KEYS)
    report("update() on a hit", min(updates() for _ in range(5)) - empty, KEYS)


def epoch(store: LocalStore, name: str, base: Stamp, ttl: bool = False) -> Stamp:
    """Every key is read and updated once, by a worker without a cache."""
    print(" epoch over all keys" + (", with a time to live" if ttl else ""))
    store.begin(base)
    backend = KeyedStateBackend(store, SCOPE, name, None)
    state = backend.state(pair_state(ttl))
    context, keys = backend.context, list(range(KEYS))
    whole = time.process_time()
    started = time.process_time()
    for key in keys:
        context.key = key
        context.identity = key
        pair = state.value() or (0, 0)
        state.update((pair[0] + 1, pair[1] + key))
    report("value() + update()", time.process_time() - started, KEYS)
    timed("flush", KEYS, backend.flush)
    if ttl:
        timed("walk over expired state", KEYS, backend.end_epoch)
    stamp = Stamp(base.epoch + 1, "bench")
    timed("commit", KEYS, lambda: backend.commit(stamp))
    report("whole epoch", time.process_time() - whole, KEYS)
    return stamp


def other_states(store: LocalStore, name: str, base: Stamp) -> Stamp:
    print(" list, map and timers: one operation per key")
    store.begin(base)
    backend = KeyedStateBackend(store, SCOPE, name, None)
    lists = backend.state(ListStateDescriptor("list", Types.LONG()))
    maps = backend.state(MapStateDescriptor("map", Types.STRING(), Types.LONG()))
    timers = backend.timers("timers", TimeDomain.EVENT_TIME)
    context = backend.context

    def each(body: Callable[[int], object]) -> None:
        for key in range(KEYS):
            context.key = key
            context.identity = key
            body(key)

    timed("list add", KEYS, lambda: each(lists.add))
    timed("map put", KEYS, lambda: each(lambda key: maps.put("a", key)))
    timed("timer register", KEYS, lambda: each(lambda key: timers.register(key, key)))
    timed("flush of all three", KEYS, backend.flush)
    timed("timers fire", KEYS, lambda: sum(1 for _ in timers.advance(KEYS)))
    stamp = Stamp(base.epoch + 1, "bench")
    timed("commit", KEYS, lambda: backend.commit(stamp))
    return stamp


def epochs_of_a_worker(name: str, directory: Path, driver: Connection) -> None:
    """Run the epochs that the driver asks for, each with some changes, and tell how long its beginning took."""
    store = load_backend(name, {}).open(directory)
    while (epoch := driver.recv()) is not None:
        started = time.perf_counter()
        store.begin(Stamp(epoch, "bench"))
        took = time.perf_counter() - started
        store.write([(os.urandom(8), os.urandom(50)) for _ in range(2000)])
        store.commit(Stamp(epoch + 1, "bench"))
        driver.send(took)


def moves(name: str, directory: Path, stamp: Stamp) -> None:
    print(" begin an epoch")
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe() for _ in range(2)]
    workers = [context.Process(target=epochs_of_a_worker, args=(name, directory, there)) for _, there in pipes]
    for worker in workers:
        worker.start()
    epoch = stamp.epoch
    for label, order in (("where the one before was", [0] * 21), ("in another process", [1, 0] * 10)):
        times = []
        for worker_number in order:
            here, _ = pipes[worker_number]
            here.send(epoch)
            times.append(here.recv())
            epoch += 1
            time.sleep(0.2)
        report(label, statistics.median(times[1:]), 1)
    for here, _ in pipes:
        here.send(None)
    for worker in workers:
        worker.join()


def main(names: list[str]) -> None:
    for name in names or ["heap", "lmdb", "rocksdb"]:
        print(f"{name}, {KEYS} keys")
        directory = Path(tempfile.mkdtemp())
        try:
            store = load_backend(name, {}).open(directory)
            stamp = Stamp(0, "bench")
            store.load([], stamp)
            stamp = epoch(store, name, stamp)
            stamp = epoch(store, name, stamp)
            stamp = other_states(store, name, stamp)
            for _ in range(2):
                stamp = epoch(store, name, stamp, ttl=True)
            store.begin(stamp)
            backend = KeyedStateBackend(store, SCOPE, name, None)
            hits(backend)
            hits(backend, ttl=True)
            store.close()
            moves(name, directory, stamp)
        finally:
            shutil.rmtree(directory)


if __name__ == "__main__":
    main(sys.argv[1:])
