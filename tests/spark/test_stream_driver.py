"""When a query may go on and what it tells of its end: the driver of streams, with a query that the test plays."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.errors import EpochError
from holdfast.runtime.data_frame_input import DataFrameInput
from holdfast.spark import stream_driver
from holdfast.spark.internals.stream_log import StreamSource
from holdfast.spark.stream_driver import StreamDriver


class Rows:
    def __init__(self, exchanged: bool) -> None:
        self.exchanged = exchanged


class Slice:
    def __init__(self, name: str, exchanged: bool = False) -> None:
        self.name = name
        self.rows = Rows(exchanged)


class Planner:
    """Micro-batches are given by name; what begins with an exclamation mark cannot be planned."""

    def micro_batch(self, inputs: Any, name: Any) -> Any:
        if name.startswith("!"):
            raise ValueError(f"no plan for {name}")
        return Slice(name, exchanged=name.startswith("shuffled"))


class Query:
    """Stands in the place of Spark's query, writer and DataFrame."""

    def __init__(self, *batches: str) -> None:
        self.batches = batches
        self.gone_on = threading.Semaphore(0)
        self.function: Callable[[Any, int], None]
        self.error: BaseException | None = None
        self.isActive = True
        self.thread = threading.Thread(target=self.work, daemon=True)

    @property
    def writeStream(self) -> Query:
        return self

    def foreachBatch(self, function: Callable[[Any, int], None]) -> Query:
        self.function = function
        return self

    def option(self, *_: str) -> Query:
        return self

    def trigger(self, **_: Any) -> Query:
        return self

    def start(self) -> Query:
        self.thread.start()
        return self

    def work(self) -> None:
        try:
            for number, name in enumerate(self.batches):
                self.function(name, number)
                self.gone_on.release()
        except ValueError as error:
            self.error = RuntimeError(f"a function of yours has failed: {error}")
        self.isActive = False

    def awaitTermination(self) -> None:
        self.thread.join()
        if self.error is not None:
            raise self.error

    def stop(self) -> None:
        self.isActive = False

    def has_gone_on(self) -> bool:
        return self.gone_on.acquire(timeout=10)

    def stays(self) -> bool:
        return not self.gone_on.acquire(timeout=0.1)


class Session:
    class conf:
        get = staticmethod(lambda *_: None)
        set = staticmethod(lambda *_: None)
        unset = staticmethod(lambda *_: None)


@pytest.fixture
def begin(monkeypatch: pytest.MonkeyPatch) -> Any:
    drivers = []

    def begin(query: Query, reads_ahead: bool = True) -> tuple[StreamDriver, threading.Semaphore]:
        monkeypatch.setattr(stream_driver, "in_one", lambda frames: query)
        arrived = threading.Semaphore(0)
        inputs = [DataFrameInput(1, "a", "a", None, ())]
        session: Any = Session()
        planner: Any = Planner()
        sources = [[StreamSource("some")]]
        driver = StreamDriver(
            session, planner, inputs, sources, {}, {"availableNow": True}, reads_ahead, arrived=arrived.release
        )
        driver.start({})
        drivers.append(driver)
        return driver, arrived

    yield begin
    for driver in drivers:
        driver.close()


def taken(driver: StreamDriver, arrived: threading.Semaphore) -> str:
    assert arrived.acquire(timeout=10)
    found: Any = driver.take()
    assert found is not None
    return str(found.name)


def test_a_query_that_reads_ahead_goes_on_when_its_micro_batch_is_taken(begin: Any) -> None:
    query = Query("first", "second")
    driver, arrived = begin(query)
    assert query.stays()
    assert taken(driver, arrived) == "first"
    assert query.has_gone_on()
    assert arrived.acquire(timeout=10)
    assert driver.waiting()
    driver.accept()
    assert not driver.held
    assert driver.take().name == "second"
    assert driver.take() is None, "it was read twice"
    driver.accept()
    assert arrived.acquire(timeout=10)
    assert driver.ended


@pytest.mark.parametrize(("name", "reads_ahead"), [("plain", False), ("shuffled", True)])
def test_a_query_stays_until_its_micro_batch_is_read(begin: Any, name: str, reads_ahead: bool) -> None:
    query = Query(name, "next")
    driver, arrived = begin(query, reads_ahead)
    assert taken(driver, arrived) == name
    assert query.stays()
    driver.accept()
    assert driver.held
    assert driver.take() is None, "it was read twice"
    driver.release()
    assert query.has_gone_on()
    assert taken(driver, arrived) == "next"


def test_the_end_is_not_seen_before_the_last_micro_batch_is_read(begin: Any) -> None:
    query = Query("only")
    driver, arrived = begin(query)
    assert arrived.acquire(timeout=10)
    assert not driver.ended
    driver.take()
    assert arrived.acquire(timeout=10)
    query.thread.join(10)
    assert not driver.ended, "nobody has read it yet"
    driver.accept()
    assert driver.ended
    assert driver.take() is None


def test_what_cannot_be_planned_fails_with_its_own_error(begin: Any) -> None:
    query = Query("first", "!second")
    driver, arrived = begin(query)
    taken(driver, arrived)
    driver.accept()
    assert arrived.acquire(timeout=10)
    query.thread.join(10)
    assert not driver.ended
    with pytest.raises(EpochError, match="could not read its streams: no plan for !second"):
        driver.take()
