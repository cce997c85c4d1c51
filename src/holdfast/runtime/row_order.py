"""In which order the rows of a batch leave for the subtasks that they go to."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

#: A batch of fewer rows keeps its order: there is nothing to gain.
GROUPED_ROWS = 8192


def by_target(targets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The rows of one target behind those of another, each in the order in which they came."""
    return np.argsort(targets.astype(np.uint16), kind="stable")


def by_target_and_key(
    targets: npt.NDArray[np.int64], hashes: npt.NDArray[np.int64], parallelism: int
) -> npt.NDArray[np.int64]:
    """The rows of one key beside each other as well, in the order in which they came.

    Whoever takes them up finds the state of a key in the processor's cache for all but the first of its rows. The order
    of rows of different keys is nobody's promise.
    """
    # One number for each row: target, as much of the hash as has room, place. Numbers are sorted much faster than
    # places are sorted by numbers, and no two are the same, so that the sort need not be stable.
    place_bits = max(1, (len(targets) - 1).bit_length())
    target_bits = parallelism.bit_length()
    hash_bits = 64 - target_bits - place_bits
    packed = targets.astype(np.uint64) << np.uint64(64 - target_bits)
    packed |= (hashes.view(np.uint64) >> np.uint64(64 - hash_bits)) << np.uint64(place_bits)
    packed |= np.arange(len(targets), dtype=np.uint64)
    packed.sort()
    return (packed & np.uint64((1 << place_bits) - 1)).astype(np.int64)
