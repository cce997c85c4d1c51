"""What each job must emit: how many rows, and a sum over them that does not depend on their order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.data import KINDS, Shape, epochs_of, value_of

#: Of the windows of Nexmark's queries, in milliseconds.
WINDOW_MS = 10_000
SLIDE_MS = 2_000
#: Of the windows of readings.
MINUTE_MS = 60_000
#: Rules of the enrichment; the rule of a key is that of ``key % RULES``, and multiplies the value.
RULES = 1_000


@dataclass(frozen=True)
class Expected:
    """Rows, and the sum of their checked columns."""

    rows: int
    checksum: int


def rule(number: int) -> int:
    """The factor of a rule."""
    return number * 7 % 13 + 1


def averages(shape: Shape) -> Expected:
    """(key, average) of every three values; both are checked."""
    counts = _counts(shape)
    threes, keys = counts // 3, np.arange(shape.keys)
    return Expected(int(threes.sum()), int((threes * (keys + value_of(keys))).sum()))


def running_totals(shape: Shape) -> Expected:
    """(key, count, sum, min, max) after every row; count and sum are checked."""
    counts = _counts(shape)
    running = counts * (counts + 1) // 2
    return Expected(int(counts.sum()), int((running * (1 + value_of(np.arange(shape.keys)))).sum()))


def epoch_totals(shape: Shape) -> Expected:
    """The totals of each key, once after every epoch that it has rows in, where an epoch is a file."""
    counts, rows, checksum = np.zeros(shape.keys, dtype=np.int64), 0, 0
    for columns in epochs_of("events", shape):
        counts += np.bincount(columns["key"], minlength=shape.keys)
        keys = np.unique(columns["key"])
        rows += len(keys)
        checksum += int((counts[keys] * (1 + value_of(keys))).sum())
    return Expected(rows, checksum)


def final_totals(shape: Shape) -> Expected:
    """The totals of each key, once, when all rows are read."""
    counts = _counts(shape)
    keys = np.flatnonzero(counts)
    return Expected(len(keys), int((counts[keys] * (1 + value_of(keys))).sum()))


def distinct(shape: Shape) -> Expected:
    """(key, value) of the first event of each key; the key is checked."""
    keys = np.flatnonzero(_counts(shape))
    return Expected(len(keys), int(keys.sum()))


def sessions(shape: Shape) -> Expected:
    """(key, length, count) of every session; all are checked. The length counts the gap behind the last row."""
    columns = _all("clicks", shape)
    order = np.lexsort((columns["time"], columns["key"]))
    key, time = columns["key"][order], columns["time"][order]
    starts = np.flatnonzero(np.r_[True, (np.diff(key) != 0) | (np.diff(time) > shape.gap_ms)])
    ends = np.r_[starts[1:], len(key)]
    length = time[ends - 1] + shape.gap_ms - time[starts]
    return Expected(len(starts), int(key[starts].sum() + length.sum() + (ends - starts).sum()))


def enriched(shape: Shape) -> Expected:
    """(key, value times the factor of its rule) of every event; both are checked."""
    counts, keys = _counts(shape), np.arange(shape.keys)
    factors = np.array([rule(number) for number in range(RULES)])[keys % RULES]
    return Expected(int(counts.sum()), int((counts * (keys + value_of(keys) * factors)).sum()))


def minutes(shape: Shape) -> Expected:
    """(key, count, sum, min, max, end of window) of each key in each tumbling window; all are checked."""
    columns = _all("readings", shape)
    starts = columns["time"] // MINUTE_MS
    groups, places, counts = np.unique(starts * shape.keys + columns["key"], return_inverse=True, return_counts=True)
    least, most = (np.full(len(groups), limit) for limit in (1 << 40, -(1 << 40)))
    np.minimum.at(least, places, columns["value"])
    np.maximum.at(most, places, columns["value"])
    keys, ends = groups % shape.keys, (groups // shape.keys + 1) * MINUTE_MS
    checked = (keys, counts, columns["value"], least, most, ends)
    return Expected(len(groups), sum(int(column.sum()) for column in checked))


def hot_items(shape: Shape) -> Expected:
    """(auction, bids, end of window): the auction with most bids of each sliding window, the lowest of several."""
    columns = _all("bids", shape)
    last = columns["time"][-1]
    ends = np.arange(SLIDE_MS, last + WINDOW_MS + 1, SLIDE_MS)
    rows = checksum = 0
    for end in ends:
        span = np.searchsorted(columns["time"], [end - WINDOW_MS, end])
        if span[0] == span[1]:
            continue
        auctions, bids = np.unique(columns["auction"][span[0] : span[1]], return_counts=True)
        best = np.argmax(bids)
        rows += 1
        checksum += int(auctions[best] + bids[best] + end)
    return Expected(rows, checksum)


def highest_bids(shape: Shape) -> Expected:
    """(auction, price, end of window): the highest bid of each tumbling window."""
    columns = _all("bids", shape)
    rows = checksum = 0
    for end in range(WINDOW_MS, int(columns["time"][-1]) + WINDOW_MS + 1, WINDOW_MS):
        span = np.searchsorted(columns["time"], [end - WINDOW_MS, end])
        if span[0] == span[1]:
            continue
        best = span[0] + np.argmax(columns["price"][span[0] : span[1]])
        rows += 1
        checksum += int(columns["auction"][best] + columns["price"][best] + end)
    return Expected(rows, checksum)


def new_users(shape: Shape) -> Expected:
    """(person, auction) for each auction that a person opens in the tumbling window in which they came."""
    persons, auctions = _all("persons", shape), _all("auctions", shape)
    known = auctions["seller"] < len(persons["person"])
    came = persons["time"][np.where(known, auctions["seller"], 0)] // WINDOW_MS
    new = known & (came == auctions["time"] // WINDOW_MS)
    return Expected(int(new.sum()), int((auctions["seller"][new] + auctions["auction"][new]).sum()))


def untouched(shape: Shape) -> Expected:
    """Every row, closing ones too, with the sum of first columns: of pipelines without state."""
    rows = checksum = 0
    for table in KINDS[shape.kind]:
        for columns in epochs_of(table, shape):
            first = next(iter(columns.values()))
            rows += len(first)
            checksum += int(first.sum())
    return Expected(rows, checksum)


ORACLES: dict[str, Callable[[Shape], Expected]] = {
    "averages": averages,
    "running_totals": running_totals,
    "epoch_totals": epoch_totals,
    "final_totals": final_totals,
    "distinct": distinct,
    "sessions": sessions,
    "enriched": enriched,
    "minutes": minutes,
    "hot_items": hot_items,
    "highest_bids": highest_bids,
    "new_users": new_users,
    "untouched": untouched,
}


def _counts(shape: Shape) -> np.ndarray:
    counts = np.zeros(shape.keys, dtype=np.int64)
    for columns in epochs_of("events", shape):
        counts += np.bincount(columns["key"], minlength=shape.keys)
    return counts


def _all(table: str, shape: Shape) -> dict[str, np.ndarray]:
    """All columns without the closing rows."""
    epochs = list(_open_epochs(table, shape))
    return {column: np.concatenate([one[column] for one in epochs]) for column in epochs[0]}


def _open_epochs(table: str, shape: Shape) -> Iterator[dict[str, np.ndarray]]:
    for number, columns in enumerate(epochs_of(table, shape)):
        if number < shape.epochs:
            yield columns
