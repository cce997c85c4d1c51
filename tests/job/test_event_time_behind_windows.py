"""Event time behind an operator that rows brought it to: what is chained to it comes as far."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from holdfast.common import Row, Types, WatermarkStrategy
from holdfast.common.job_client import SavepointFormat
from holdfast.common.watermark_strategy import TimestampAssigner
from holdfast.datastream.aggregates import Count, Sum
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.datastream.window import TumblingEventTimeWindows
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import Scripted, environment, published
from tests.job.counting import settings

SALE = Types.ROW_NAMED(["shop", "time"], [Types.STRING(), Types.LONG()])
FIGURE = Types.ROW_NAMED(["shop", "rows"], [Types.STRING(), Types.LONG()])


class TimeOf(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[1])


def test_windows_of_windows_need_no_later_watermark(in_process: InProcessEngine, tmp_path: Path) -> None:
    """The last row comes with the last watermark: nothing that comes behind it tells of a later one."""
    changes = {"execution.checkpointing.savepoint-dir": str(tmp_path / "savepoints")}
    env = environment(**settings(tmp_path, **changes)).set_parallelism(1)
    rows = [Row("a", 5), Row("a", 100), Row("a", 100)]
    source = env.from_source(Scripted([rows], ends=False), WatermarkStrategy.no_watermarks(), "sales", SALE)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(TimeOf())
    ten = TumblingEventTimeWindows.of(10)
    counts = source.assign_timestamps_and_watermarks(strategy).key_by("shop").window(ten).aggregate(rows=Count())
    behind = counts.map(lambda row: Row(row[0], row[3]), FIGURE).key_by("shop").window(ten)
    behind.aggregate(rows=Sum("rows")).sink_to(FileSink.json(str(tmp_path / "figures")))
    client = env.execute_async("windows")
    deadline = time.monotonic() + 5
    while len(client.get_history().epochs) < 4 and client.is_running() and time.monotonic() < deadline:
        time.sleep(0.002)
    client.stop_with_savepoint(False, format_type=SavepointFormat.NATIVE).result(30)
    client.get_job_execution_result().result(30)
    assert published(tmp_path / "figures") == [("a", 0, 10, 1)]
