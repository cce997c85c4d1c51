"""The memory of RocksDB in one worker process: one block cache and one bound of write buffers for all databases.

A worker runs one task at a time, so a worker's memory is that of a slot, and an executor's is that of its task slots
(cores) together. Of a budget B with write buffer ratio r, write buffers may take 2Br/3 and are charged to the cache,
which is (3-r)B/3 large: RocksDB lets write buffers grow by half beyond their bound before it has flushed them, and
that half is what the cache leaves free. Index and filter blocks are in the cache too. Outside of the budget are
buffers of running compactions, some MB for each background job.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holdfast.state.rocksdb.library import load_engine
from holdfast.state.rocksdb.options import RocksDbOptions


@dataclass(frozen=True)
class Memory:
    """What databases are opened with. ``buffers`` is None where every database has its own bound."""

    cache: Any
    buffers: Any
    write_buffer_size: int

    def buffers_run_full(self) -> bool:
        """Whether write buffers of databases that nobody uses should be given up."""
        return self.buffers is not None and 2 * self.buffers.get_usage() > self.buffers.get_buffer_size()


_shared: dict[tuple[int, float], Memory] = {}


def memory_of(settings: RocksDbOptions) -> Memory:
    """The memory that this process has for these settings: shared, or of a single database where it is not managed."""
    engine = load_engine()
    if not settings.managed:
        return Memory(engine.Cache(settings.cache_size), None, settings.write_buffer_size)
    key = settings.per_slot, settings.write_buffer_ratio
    if key not in _shared:
        budget, ratio = key
        cache = engine.Cache(int((3 - ratio) * budget / 3))
        bound = int(2 * budget * ratio / 3)
        # It must not stall: a database that nobody writes to would never flush, and the one that waits for it hold on.
        buffers = engine.WriteBufferManager.new_write_buffer_manager_with_cache(bound, False, cache)
        _shared[key] = Memory(cache, buffers, min(settings.write_buffer_size, bound // 2))
    return _shared[key]
