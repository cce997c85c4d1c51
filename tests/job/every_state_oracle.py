"""What ``every_state_job`` gives, computed from its rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from tests.job import every_state_job as job

Sale = tuple[str, int, int]


def expected(restored_behind: int | None) -> Counter[tuple[str, str]]:
    """All results with how often they come; of a job that was restored behind so many epochs, when it had stood still
    for longer than the short time to live, and than the timers by processing time wait.
    """
    epochs = [[(row[0], row[1], row[2]) for row in rows] for rows in job.script()]
    by_shop: dict[str, list[Sale]] = defaultdict(list)
    for sale in (sale for sales in epochs for sale in sales):
        by_shop[sale[0]].append(sale)
    results = [("totals", row) for row in _totals(epochs)]
    results += [("watermark", row) for row in _watermarks([sale for sales in epochs for sale in sales])]
    old = Counter(shop for sales in epochs[: restored_behind or 0] for shop, *_ in _some(sales))
    for shop, sales in by_shop.items():
        assert restored_behind is None or old[shop], "every shop has keyed state in the snapshot"
        results += _of_shop(sales)
        results += [("scaled", row) for row in _scaled(_some(sales))]
        results += [("states", row) for row in _states(_some(sales), old[shop])]
        results += [("raw", (shop, rows + 1)) for rows in range(len(_some(sales)))]
        results += [("raw price", (price,)) for _, price, _ in _some(sales)]
        timers = {at + job.EVENT_DELAY for _, _, at in _some(sales)}
        timers |= set() if restored_behind is None else {job.DUE}
        results += [("timer", (shop, at)) for at in timers]
    for number in range(job.NUMBERS):
        results.append(("counts", (number % job.REMAINDERS, number // job.REMAINDERS + 1)))
        if number % job.SOME == 0:
            results += [("split", (number,)), ("union", (number,))]
    return Counter((name, repr(row)) for name, row in results)


def _some(sales: list[Sale]) -> list[Sale]:
    return [sale for sale in sales if sale[1] % job.SOME == 0]


def _totals(epochs: list[list[Sale]]) -> Iterator[Any]:
    prices: dict[str, list[int]] = defaultdict(list)
    for sales in epochs:
        for shop, price, _ in sales:
            prices[shop].append(price)
        for shop in {shop for shop, *_ in sales}:
            yield shop, len(prices[shop]), sum(prices[shop]), max(prices[shop])


def _watermarks(sales: list[Sale]) -> Iterator[Any]:
    """Times of rows, with the watermark that the rows before them have left."""
    watermark = -(1 << 63)
    for _, price, at in sales:
        if price % job.SOME == 0:
            yield at, watermark
        watermark = max(watermark, at - job.BOUND - 1)


def _of_shop(sales: list[Sale]) -> Iterator[tuple[str, Any]]:
    shop, _, first = sales[0]
    for rows in range(1, len(sales) + 1):
        yield "sum", (shop, sum(price for _, price, _ in sales[:rows]), first)
    for rows in range(job.COUNTED, len(sales) + 1, job.COUNTED):
        yield "counted", max(sales[rows - job.COUNTED : rows], key=lambda sale: sale[1:])
    for start, inside in _windows(sales, job.SIZE).items():
        yield "greatest", max(inside, key=lambda sale: sale[1:])
        yield "kept", (shop, start, [sale[1:] for sale in inside[-job.KEPT :]])
    for start, inside in _windows(sales, job.SLIDE).items():
        prices = [price for _, price, _ in inside]
        figures = (len(prices), sum(prices), min(prices), max(prices), sum(prices) / len(prices))
        yield "figures", (shop, start, start + job.SIZE, *figures)
    for inside in _sessions(_some(sales)):
        mean = sum(price for _, price, _ in inside) // len(inside)
        yield "sessions", (shop, inside[0][2], inside[-1][2] + job.GAP, mean)


def _windows(sales: list[Sale], slide: int) -> dict[int, list[Sale]]:
    """The rows of each window of SIZE, by its start."""
    windows: dict[int, list[Sale]] = defaultdict(list)
    for sale in sales:
        last = sale[2] // slide * slide
        for start in range(last, sale[2] - job.SIZE, -slide):
            windows[start].append(sale)
    return windows


def _sessions(sales: list[Sale]) -> list[list[Sale]]:
    sessions: list[list[Sale]] = []
    for sale in sorted(sales, key=lambda sale: sale[2]):
        if sessions and sale[2] <= sessions[-1][-1][2] + job.GAP:
            sessions[-1].append(sale)
        else:
            sessions.append([sale])
    return sessions


def _scaled(sales: list[Sale]) -> Iterator[Any]:
    for rows, (shop, price, _) in enumerate(sales, start=1):
        yield shop, price * job.SHOPS.index(shop), rows


def _states(sales: list[Sale], old: int) -> Iterator[Any]:
    """What is kept at each row. The rows before ``old`` are forgotten by what lives for a short time."""
    for rows in range(1, len(sales) + 1):
        prices, times = [price for _, price, _ in sales[:rows]], [at for _, _, at in sales[:rows]]
        by_time = sorted({at % 5: str(at) for at in times}.items())
        short = rows - old if rows > old else rows
        remainders = sorted(Counter(price % 3 for price in prices).items())
        kept = (rows, times[-1], sum(prices), by_time, max(prices), sum(prices) // rows)
        yield sales[0][0], *kept, short, rows, sum(times), remainders
