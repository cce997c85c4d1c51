"""Known aggregates and their keys: keys that are one key in several forms, stored aggregates that a later program reads
in another order, rows that come right before a barrier.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from holdfast.common import Row, Types, WatermarkStrategy
from holdfast.datastream import DataStream, KeyedBatchFunction, KeyedStream, RuntimeContext, StreamOperator
from holdfast.datastream.aggregates import Average, Count, Max, Min, Sum
from holdfast.datastream.state import ValueStateDescriptor
from holdfast.errors import JobExecutionError
from holdfast.runtime.epoch import EpochSpec
from holdfast.runtime.live_task import forget_live_tasks
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import PAIR, Scripted, environment
from tests.job.counting import settings


def collected(stream: DataStream) -> list[tuple[Any, ...]]:
    with stream.execute_and_collect() as rows:
        return [tuple(row) for row in rows]


def stream_of(tmp_path: Path, rows: list[Any], key_type: Any, value_type: Any = None, **changes: str) -> DataStream:
    env = environment(**settings(tmp_path, **{"restart-strategy.type": "none", **changes})).set_parallelism(2)
    return env.from_collection(rows, Types.ROW_NAMED(["k", "v"], [key_type, value_type or Types.LONG()]))


class Counts(KeyedBatchFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.counts = runtime_context.get_state(ValueStateDescriptor("counts", Types.LONG()))

    def process_batch(self, keys: pa.Array, batch: pa.RecordBatch, ctx: Any) -> pa.RecordBatch:
        counted = pa.table({"k": keys}).group_by("k").aggregate([([], "count_all")])
        distinct = counted.column("k").combine_chunks()
        before = self.counts.get_many(distinct).fill_null(0).to_pylist()
        after = [n + m for n, m in zip(before, counted.column("count_all").to_pylist(), strict=True)]
        self.counts.put_many(distinct, pa.array(after))
        return pa.record_batch({"k": distinct, "n": pa.array(after)})


ONE_KEY_IN_FORMS = [
    (Types.DOUBLE(), [0.0, -0.0]),
    (Types.FLOAT(), [-0.0, 0.0]),
    (Types.DOUBLE(), [math.nan, -math.nan]),
    (Types.BIG_DEC(), [Decimal("1.0"), Decimal("1.00"), Decimal("1")]),
]


@pytest.mark.parametrize(("key_type", "forms"), ONE_KEY_IN_FORMS, ids=str)
def test_a_batch_function_sees_one_key_in_one_form(
    in_process: InProcessEngine, tmp_path: Path, key_type: Any, forms: list[Any]
) -> None:
    rows = [Row(form, 1) for form in forms * 20]
    keyed = stream_of(tmp_path, rows, key_type, **{"holdfast.epoch.max-rows": "12"})
    counts = collected(keyed.key_by("k").process(Counts(), Types.ROW_NAMED(["k", "n"], [key_type, Types.LONG()])))
    assert max(n for _, n in counts) == len(rows)


@pytest.mark.parametrize(("key_type", "forms"), ONE_KEY_IN_FORMS, ids=str)
def test_one_key_in_several_forms_is_aggregated_as_one(
    in_process: InProcessEngine, tmp_path: Path, key_type: Any, forms: list[Any]
) -> None:
    rows = [Row(form, 1) for form in forms * 20]
    keyed = stream_of(tmp_path, rows, key_type, **{"holdfast.epoch.max-rows": "12"}).key_by("k")
    results = collected(keyed.aggregate(n=Count(), total=Sum("v")))
    assert max(row[-2:] for row in results) == (len(rows), len(rows))


def test_a_key_of_several_columns_in_several_forms(in_process: InProcessEngine, tmp_path: Path) -> None:
    env = environment(**settings(tmp_path, **{"holdfast.epoch.max-rows": "12"})).set_parallelism(2)
    type_info = Types.ROW_NAMED(["k", "l", "v"], [Types.DOUBLE(), Types.STRING(), Types.LONG()])
    rows = [Row(zero, letter, 1) for zero in (0.0, -0.0) for letter in ("ü", None)] * 20
    results = collected(env.from_collection(rows, type_info).key_by(["k", "l"]).aggregate(total=Sum("v")))
    assert {row[1]: row[2] for row in results} == {"ü": 40, None: 40}


def test_an_average_of_large_numbers(in_process: InProcessEngine, tmp_path: Path) -> None:
    rows = [Row("a", (1 << 58) + n) for n in range(4)]
    results = collected(stream_of(tmp_path, rows, Types.STRING()).key_by("k").aggregate(mean=Average("v")))
    assert results[-1] == ("a", float(1 << 58))


def test_large_sums_of_many_keys(in_process: InProcessEngine, tmp_path: Path) -> None:
    """Together they would pass 64 bits; none of them does."""
    rows = [Row(f"key-{n}", 1 << 61) for n in range(50)]
    results = collected(stream_of(tmp_path, rows, Types.STRING()).key_by("k").aggregate(total=Sum("v")))
    assert sorted(results) == sorted((row[0], 1 << 61) for row in rows)


def test_a_key_named_like_an_aggregate(in_process: InProcessEngine, tmp_path: Path) -> None:
    env = environment(**settings(tmp_path))
    type_info = Types.ROW_NAMED(["v_sum", "count_all", "v"], [Types.STRING(), Types.LONG(), Types.LONG()])
    stream = env.from_collection([Row("a", 7, 2), Row("a", 7, 3)], type_info)
    results = collected(stream.key_by(["v_sum", "count_all"]).aggregate(n=Count(), total=Sum("v"), mean=Average("v")))
    assert results[-1] == ("a", 7, 2, 5, 2.5)


class Announced(StreamOperator):
    """Gives a row in front of every barrier."""

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        return [value]

    def prepare_snapshot_pre_barrier(self, checkpoint_id: int) -> Iterable[Any]:
        return [(-1, checkpoint_id)]


EPOCHS = [[(row % 3, row) for row in range(first, first + 5)] for first in range(0, 30, 5)]


def running(tmp_path: Path, operator: Any = None, ends: bool = True, **changes: str) -> KeyedStream:
    env = environment(**settings(tmp_path, **changes)).set_parallelism(1)
    rows = env.from_source(Scripted(EPOCHS, ends), WatermarkStrategy.no_watermarks(), "script", PAIR).uid("source")
    return (rows if operator is None else rows.transform("operator", PAIR, operator)).key_by("f0")


def test_rows_in_front_of_a_barrier_leave_with_it(in_process: InProcessEngine, tmp_path: Path) -> None:
    """What waits in front of an exchange is in no snapshot."""

    def lose_the_worker(spec: EpochSpec) -> None:
        forget_live_tasks("job", before_attempt=1 << 30)

    in_process.after_epoch = lose_the_worker
    results = collected(running(tmp_path, Announced()).aggregate(n=Count(), last=Max("f1")))
    announced = [row for row in results if row[0] == -1]
    assert len(in_process.epochs) > 5
    assert [count for _, count, _ in announced] == [last for _, _, last in announced]
    assert announced[-1][1] >= len(in_process.epochs) - 1


def stopped(engine: InProcessEngine, keyed: KeyedStream, tmp_path: Path, **aggregates: Any) -> str:
    """A savepoint behind half of the rows: the epoch behind them waits until it is asked for."""
    asked = threading.Event()

    def wait_behind_half(spec: EpochSpec) -> None:
        if spec.epoch > len(EPOCHS) // 2:
            assert asked.wait(60)

    engine.before_epoch = wait_behind_half
    keyed.aggregate(**aggregates).uid("figures").print()
    client = keyed.get_execution_environment().execute_async()
    while len(client.get_history().epochs) < len(EPOCHS) // 2 and client.is_running():
        time.sleep(0.002)
    path = client.stop_with_savepoint(False, str(tmp_path / "savepoints"))
    asked.set()
    client.get_job_execution_result().result(60)
    return str(path.result(60))


def test_stored_aggregates_are_known_by_what_they_are(in_process: InProcessEngine, tmp_path: Path) -> None:
    kept = {"least": Min("f1"), "most": Max("f1"), "mean": Average("f1")}
    path = stopped(in_process, running(tmp_path, ends=False), tmp_path, **kept)
    restored = running(tmp_path, **{"execution.state-recovery.path": path})
    # Another order, other names, and what Average keeps for Sum and Count.
    figures = restored.aggregate(n=Count("f1"), top=Max("f1"), total=Sum("f1"), low=Min("f1")).uid("figures")
    last = {row[0]: row[1:] for row in collected(figures)}
    for key in range(3):
        values = [value for rows in EPOCHS for k, value in rows if k == key]
        assert last[key] == (len(values), max(values), sum(values), min(values))


@pytest.mark.parametrize("after", [{"total": Sum("f0")}, {"total": Sum("f1"), "n": Count()}, {"total": Min("f1")}])
def test_an_aggregate_that_was_not_kept_is_refused(in_process: InProcessEngine, tmp_path: Path, after: Any) -> None:
    path = stopped(in_process, running(tmp_path, ends=False), tmp_path, total=Sum("f1"))
    changes = {"execution.state-recovery.path": path, "restart-strategy.type": "none"}
    with pytest.raises(JobExecutionError, match=r"stored as value state with value type TUPLE<sum\(f1\): LONG>"):
        collected(running(tmp_path, **changes).aggregate(**after).uid("figures"))


def test_keys_that_change_change_in_aggregates_too(in_process: InProcessEngine, tmp_path: Path) -> None:
    path = stopped(in_process, running(tmp_path, ends=False), tmp_path, least=Min("f1"))
    restored = running(tmp_path, **{"execution.state-recovery.path": path}).migrate_key_from(0, lambda key: 2 - key)
    last = dict(collected(restored.aggregate(least=Min("f1")).uid("figures")))
    assert last == {0: 2, 1: 1, 2: 0}
