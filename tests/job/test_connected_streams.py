"""Connected streams in whole jobs, with a checkpoint in every epoch and a failure in the middle."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from holdfast import plan_restore
from holdfast.common import JobClient, Types, WatermarkStrategy
from holdfast.datastream import CoMapFunction, ConnectedStreams, DataStream, StreamExecutionEnvironment
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.runtime.epoch import EpochSpec
from holdfast.state.outcomes import Fate
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import PAIR, Scripted, environment, published
from tests.job.connected_functions import (
    ORDERS,
    RATES,
    UNPRICED,
    ByValue,
    CountBoth,
    Price,
    PriceModel,
    Signs,
    SignsAside,
    SignsTwice,
    SumOfSpan,
    sums_of_spans,
)
from tests.job.counting import settings

ALL_ORDERS = [row for rows in ORDERS for row in rows]
ALL_RATES = [row for rows in RATES for row in rows]
TRIPLE = Types.TUPLE([Types.LONG()] * 3)


def fail_once(in_process: InProcessEngine, epoch: int = 4) -> None:
    def fail(spec: EpochSpec) -> None:
        if (spec.attempt, spec.epoch) == (1, epoch):
            raise OSError("the executor is gone")

    in_process.after_epoch = fail


def sources(
    tmp_path: Path, parallelism: int, ends: bool = True, **changes: str
) -> tuple[StreamExecutionEnvironment, ConnectedStreams]:
    env = environment(**settings(tmp_path, **changes)).set_parallelism(parallelism)
    never = WatermarkStrategy.no_watermarks()
    orders = env.from_source(Scripted(ORDERS, ends), never, "orders", PAIR).uid("orders")
    rates = env.from_source(Scripted(RATES, ends), never, "rates", PAIR).uid("rates")
    return env, orders.connect(rates)


def write(stream: DataStream, path: Path) -> None:
    stream.sink_to(FileSink.json(str(path))).uid(path.name)


def by_key(connected: ConnectedStreams) -> ConnectedStreams:
    return connected.key_by(lambda row: row[0], lambda row: row[0], Types.LONG())


def start_pricing(tmp_path: Path, parallelism: int, ends: bool = True, **changes: str) -> JobClient:
    return pricing(tmp_path, parallelism, ends, **changes).execute_async()


def pricing(tmp_path: Path, parallelism: int, ends: bool = True, **changes: str) -> StreamExecutionEnvironment:
    env, connected = sources(tmp_path, parallelism, ends, **changes)
    priced = by_key(connected).process(Price(), PAIR).uid("price")
    write(priced, tmp_path / "priced")
    write(priced.get_side_output(UNPRICED), tmp_path / "unpriced")
    return env


@pytest.mark.parametrize("parallelism", [1, 2, 5])
def test_both_streams_see_one_state_of_a_key(in_process: InProcessEngine, tmp_path: Path, parallelism: int) -> None:
    fail_once(in_process)
    start_pricing(tmp_path, parallelism).get_job_execution_result().result(60)
    expected = PriceModel().run(ORDERS, RATES)
    assert published(tmp_path / "priced") == sorted(expected.priced)
    assert published(tmp_path / "unpriced") == sorted(expected.unpriced)
    assert {attempt for attempt, _ in in_process.epochs} == {1, 2}


@pytest.mark.parametrize("parallelism", [1, 5])
def test_as_a_batch(in_process: InProcessEngine, tmp_path: Path, parallelism: int, monkeypatch: Any) -> None:
    fail_once(in_process)
    monkeypatch.setattr(Scripted, "bounded", True)
    start_pricing(tmp_path, parallelism, **{"execution.runtime-mode": "BATCH"}).get_job_execution_result().result(60)
    expected = PriceModel().run(ORDERS, RATES)
    assert published(tmp_path / "priced") == sorted(expected.priced)
    assert published(tmp_path / "unpriced") == sorted(expected.unpriced)


@pytest.mark.parametrize(("before", "after"), [(1, 3), (5, 2)])
def test_state_of_both_streams_over_a_restore_with_another_parallelism(
    in_process: InProcessEngine, tmp_path: Path, before: int, after: int
) -> None:
    client = start_pricing(tmp_path, before, ends=False, **{"pipeline.max-parallelism": "32"})
    while len(client.get_history().epochs) < 3 and client.is_running():
        time.sleep(0.002)
    path = client.stop_with_savepoint(False, str(tmp_path / "savepoints")).result(30)
    client.get_job_execution_result().result(30)
    rehearsed = plan_restore(pricing(tmp_path, after, **{"pipeline.max-parallelism": "32"}), path)
    fates = {state.state: state.fate for state in rehearsed.operator("price").states}
    assert (fates["rate"], fates["waiting"]) == (Fate.KEPT, Fate.KEPT)
    client = start_pricing(tmp_path, after, **{"execution.state-recovery.path": path, "pipeline.max-parallelism": "32"})
    client.get_job_execution_result().result(30)
    expected = PriceModel().run(ORDERS, RATES)
    assert published(tmp_path / "priced") == sorted(expected.priced)
    assert published(tmp_path / "unpriced") == sorted(expected.unpriced)


@pytest.mark.parametrize("parallelism", [1, 2, 5])
def test_timers_wait_for_both_streams(in_process: InProcessEngine, tmp_path: Path, parallelism: int) -> None:
    """The second stream is far behind the first in event time: were the first to move it, spans would be cut short."""
    fail_once(in_process)
    _, connected = sources(tmp_path, parallelism)
    env = connected.stream1.get_execution_environment()
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(ByValue())
    first, second = (
        stream.assign_timestamps_and_watermarks(strategy) for stream in (connected.stream1, connected.stream2)
    )
    keyed = first.key_by(lambda row: row[0], Types.LONG()).connect(second.key_by(lambda row: row[0], Types.LONG()))
    write(keyed.process(SumOfSpan(), TRIPLE), tmp_path / "out")
    env.execute()
    assert published(tmp_path / "out") == sums_of_spans(ORDERS, RATES)


@pytest.mark.parametrize("parallelism", [1, 2, 5])
@pytest.mark.parametrize("kind", ["map", "flat_map", "process"])
def test_functions_without_keys(in_process: InProcessEngine, tmp_path: Path, parallelism: int, kind: str) -> None:
    fail_once(in_process)
    env, connected = sources(tmp_path, parallelism)
    negated = [(key, -value) for key, value in ALL_RATES]
    if kind == "map":
        write(connected.map(Signs(), PAIR), tmp_path / "out")
        expected = [row for row in ALL_ORDERS + negated if row[1] % 5]
    elif kind == "flat_map":
        write(connected.flat_map(SignsTwice(), PAIR), tmp_path / "out")
        expected = 2 * ALL_ORDERS + [row for row in negated if row[1] % 5]
    else:
        out = connected.process(SignsAside(), PAIR)
        write(out.union(out.get_side_output(SignsAside.ASIDE)), tmp_path / "out")
        expected = ALL_ORDERS + negated
    env.execute()
    assert published(tmp_path / "out") == sorted(expected)


@pytest.mark.parametrize("parallelism", [1, 5])
def test_a_map_of_keyed_streams_has_the_state_of_the_key(
    in_process: InProcessEngine, tmp_path: Path, parallelism: int
) -> None:
    fail_once(in_process)
    env, connected = sources(tmp_path, parallelism)
    write(by_key(connected).map(CountBoth(), PAIR), tmp_path / "out")
    env.execute()
    counts = Counter(key for key, _ in ALL_ORDERS + ALL_RATES)
    assert published(tmp_path / "out") == sorted((k, n) for k, total in counts.items() for n in range(1, total + 1))


@pytest.mark.parametrize("parallelism", [1, 5])
@pytest.mark.parametrize("keyed", ["first", "second"])
def test_rows_of_the_only_keyed_stream_go_by_their_key(
    in_process: InProcessEngine, tmp_path: Path, parallelism: int, keyed: str
) -> None:
    fail_once(in_process)
    env, connected = sources(tmp_path, parallelism)
    streams = {"first": connected.stream1, "second": connected.stream2}
    streams[keyed] = streams[keyed].key_by(lambda row: row[0], Types.LONG())
    write(streams["first"].connect(streams["second"]).map(BothWhere(), TRIPLE), tmp_path / "out")
    env.execute()
    out = published(tmp_path / "out")
    assert sorted(row[1:] for row in out) == sorted(ALL_ORDERS + [(key, -1 - value) for key, value in ALL_RATES])
    mine = [row for row in out if (row[2] < 0) is (keyed == "second")]
    assert len({row[:2] for row in mine}) == len({row[1] for row in mine})


@pytest.mark.parametrize("parallelism", [1, 5])
def test_a_stream_connected_to_itself_and_to_its_side_output(
    in_process: InProcessEngine, tmp_path: Path, parallelism: int
) -> None:
    env, connected = sources(tmp_path, parallelism)
    orders = connected.stream1
    write(orders.connect(orders).map(Signs(), PAIR), tmp_path / "self")
    aside = connected.process(SignsAside(), PAIR)
    write(aside.get_side_output(SignsAside.ASIDE).connect(aside).map(Signs(), PAIR), tmp_path / "aside")
    env.execute()
    kept = [row for row in ALL_ORDERS if row[1] % 5]
    assert published(tmp_path / "self") == sorted(kept + [(key, -value) for key, value in kept])
    rates = [(key, -value) for key, value in ALL_RATES if value % 5]
    assert published(tmp_path / "aside") == sorted(rates + [(key, -value) for key, value in kept])


class LastDigit:
    """A partitioner with a life of its own."""

    opened = False

    def open(self, runtime_context: Any) -> None:
        self.opened = True

    def partition(self, key: int, num_partitions: int) -> int:
        assert self.opened
        return key % 10 % num_partitions


@pytest.mark.parametrize("parallelism", [1, 2, 5])
def test_partitioning(in_process: InProcessEngine, tmp_path: Path, parallelism: int) -> None:
    """Whatever deals rows out, every one of them arrives once, where it should."""
    fail_once(in_process)
    env, connected = sources(tmp_path, parallelism)
    orders = connected.stream1
    streams = {
        "custom": orders.partition_custom(LastDigit(), lambda row: row[1]),
        "rescaled": orders.rescale(),
        "shuffled": orders.shuffle(),
        "balanced": orders.rebalance(),
        "global": orders.global_(),
        "everywhere": orders.broadcast(),
    }
    for name, stream in streams.items():
        write(stream.map(Where(), TRIPLE), tmp_path / name)
    env.execute()
    custom = published(tmp_path / "custom")
    assert custom == sorted((value % 10 % parallelism, key, value) for key, value in ALL_ORDERS)
    assert {subtask for subtask, _, _ in published(tmp_path / "global")} == {0}
    for name in ("rescaled", "shuffled", "balanced"):
        out = published(tmp_path / name)
        assert sorted(row[1:] for row in out) == sorted(ALL_ORDERS)
        assert {row[0] for row in out} == set(range(parallelism))
    assert len(published(tmp_path / "everywhere")) == parallelism * len(ALL_ORDERS)


class BothWhere(CoMapFunction):
    """A row behind the number of the subtask that sees it, that of the second stream with a negative value."""

    def open(self, runtime_context: Any) -> None:
        self.subtask = runtime_context.get_index_of_this_subtask()

    def map1(self, value: Any) -> Any:
        return self.subtask, *value

    def map2(self, value: Any) -> Any:
        return self.subtask, value[0], -1 - value[1]


class Where:
    """A row behind the number of the subtask that sees it."""

    def open(self, runtime_context: Any) -> None:
        self.subtask = runtime_context.get_index_of_this_subtask()

    def map(self, value: Any) -> Any:
        return self.subtask, *value
