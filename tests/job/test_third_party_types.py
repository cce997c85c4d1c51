"""A job whose rows, keys and state are of types of another package, over an exchange, a savepoint and a restore."""

from __future__ import annotations

from decimal import Decimal
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from acme_streams.types import Ipv4TypeInfo, Money, MoneyTypeInfo

from holdfast.common import JobClient, Types, WatermarkStrategy
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import PAIR, Scripted, environment, published
from tests.job.counting import WatchedSink, settings

EPOCHS = [[(host, amount) for host in range(5)] for amount in range(1, 7)]
PAYMENT = Types.ROW_NAMED(["host", "money"], [Ipv4TypeInfo(), MoneyTypeInfo()])


def payment(row: tuple[int, int]) -> Any:
    return IPv4Address(row[0]), Money(Decimal(row[1]), "EUR")


def total(row: Any, seen: Money | None) -> tuple[Any, Money]:
    money = row.money if seen is None else Money(seen.amount + row.money.amount, "EUR")
    return (int(row.host), int(money.amount)), money


def start(tmp_path: Path, epochs: list[list[Any]], ends: bool, **changes: str) -> JobClient:
    env = environment(**settings(tmp_path, **changes)).set_parallelism(2)
    source = env.from_source(Scripted(epochs, ends), WatermarkStrategy.no_watermarks(), "script").uid("source")
    payments = source.map(payment, output_type=PAYMENT).uid("payments")
    totals = payments.key_by("host").map_with_state(total, state_type=MoneyTypeInfo(), output_type=PAIR).uid("totals")
    totals.sink_to(WatchedSink(tmp_path / "out")).uid("sink")
    return env.execute_async("payments")


@pytest.mark.parametrize("backend", ["heap", "lmdb", "rocksdb"])
def test_totals_go_on_from_a_savepoint(in_process: InProcessEngine, tmp_path: Path, backend: str) -> None:
    first = start(tmp_path, EPOCHS[:3], ends=False, **{"state.backend.type": backend})
    while len(published(tmp_path / "out")) < 15:
        assert first.get_job_status().result().name not in ("FAILED", "FINISHED")
    path = first.stop_with_savepoint(False, str(tmp_path / "savepoints")).result(30)
    table = pa.concat_tables([pq.read_table(file) for file in Path(path).glob("totals/keyed/state/*.parquet")])
    assert sorted(zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True), key=lambda pair: pair[0]) == [
        (host, {"f0": Decimal("6.00"), "f1": "EUR"}) for host in range(5)
    ]
    assert table.schema.field("value").metadata[b"holdfast.type"] == b"MONEY"
    changes = {"state.backend.type": backend, "execution.state-recovery.path": path}
    restored = start(tmp_path, EPOCHS, ends=True, **changes)
    restored.get_job_execution_result().result(30)
    assert published(tmp_path / "out") == sorted((host, sum(range(1, n + 1))) for host in range(5) for n in range(1, 7))
