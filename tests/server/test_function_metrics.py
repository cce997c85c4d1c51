"""Metrics of functions in REST, for Prometheus, in the history and on the page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from holdfast.common import Types, WatermarkStrategy
from holdfast.common.accumulators import IntCounter
from holdfast.datastream import MapFunction, RuntimeContext
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import Scripted, environment
from tests.server.serving import JOB, Served, serving
from tests.server.test_page import _show, needs_chromium

ROWS = [[1, 2, 3], [4, 5, 6, 7]]


class Measured(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        group = runtime_context.get_metrics_group()
        subtask = runtime_context.get_index_of_this_subtask()
        self.rows = group.add_group("shop", "north east").counter("rows read")
        self.sizes = group.add_group("sizes").distribution("size")
        self.events = group.add_group("job_id", "mine").add_group("1st", "x").meter("events")
        group.gauge("text", lambda: f"of {subtask}")
        group.gauge("open", lambda: True)
        group.counter("rows.all").inc(10 + subtask)
        group.counter("rows:all").inc(1)
        self.total = IntCounter()
        runtime_context.add_accumulator("total", self.total)

    def map(self, value: int) -> int:
        self.rows.inc()
        self.sizes.update(value)
        self.events.mark_event()
        self.total.add(value)
        return value


def start(given: dict[str, str]) -> Any:
    env = environment(**given)
    numbers = env.from_source(Scripted(ROWS, ends=False), WatermarkStrategy.no_watermarks(), "script")
    mapped = numbers.rebalance().map(Measured(), Types.LONG()).name("my: map").uid("map")
    mapped.print()
    return env.execute_async("measured")


@pytest.fixture
def measured(in_process: InProcessEngine, tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path, start=start) as served:
        path = f"/jobs/{JOB}/accumulators"
        served.wait(lambda: [one["value"] for one in served.get(path)["user-task-accumulators"]] == ["28"])
        yield served


def vertex_of(served: Served) -> str:
    (found,) = (v["id"] for v in served.get(f"/jobs/{JOB}")["vertices"] if v["name"].startswith("my: map"))
    return f"/jobs/{JOB}/vertices/{found}"


def values(served: Served, path: str) -> dict[str, str]:
    ids = [one["id"] for one in served.get(path)]
    return {one["id"]: one["value"] for one in served.get(f"{path}?get={','.join(ids)}")}


def test_metrics_of_a_vertex_and_of_a_subtask(measured: Served) -> None:
    vertex = vertex_of(measured)
    of_all = values(measured, f"{vertex}/metrics")
    assert all(name.startswith(("0.", "1.")) for name in of_all)
    # What separates ids and their parts is replaced in names, as in Flink.
    rows = [int(of_all[f"{subtask}.my__map.shop.north_east.rows_read"]) for subtask in (0, 1)]
    assert sum(rows) == 7 == sum(int(of_all[f"{subtask}.numRecordsIn"]) for subtask in (0, 1))
    assert of_all["0.my__map.text"] == "of 0" and of_all["1.my__map.open"] == "true"
    of_one = values(measured, f"{vertex}/subtasks/1/metrics")
    assert {f"1.{name}": value for name, value in of_one.items()} == {
        name: value for name, value in of_all.items() if name.startswith("1.")
    }
    sizes = {part: float(of_one[f"my__map.sizes.size_{part}"]) for part in ("count", "sum", "min", "max", "mean")}
    assert sizes["mean"] == sizes["sum"] / sizes["count"] and sizes["count"] == rows[1]
    assert float(of_one["my__map.job_id.mine.1st.x.events"]) == pytest.approx(rows[1] / 60)
    assert int(of_one["my__map.job_id.mine.1st.x.events_count"]) == rows[1]
    assert measured.get(f"{vertex}/metrics?get=0.numRecordsIn,none") == [
        {"id": "0.numRecordsIn", "value": of_all["0.numRecordsIn"]}
    ]
    assert measured.call("GET", f"{vertex}/subtasks/2/metrics").status == 404
    assert measured.call("GET", f"{vertex}/subtasks/0-1/metrics").status == 400
    assert measured.call("GET", f"/jobs/{JOB}/vertices/none/metrics").status == 404


def test_metrics_over_subtasks(measured: Served) -> None:
    path = f"{vertex_of(measured)}/subtasks/metrics"
    names = [one["id"] for one in measured.get(path)]
    assert "my__map.sizes.size_sum" in names and "my__map.text" not in names
    assert all(one.keys() == {"id"} for one in measured.get(path))
    told = measured.get(f"{path}?get=my__map.rows_all,none")
    # Two names that come to one: Flink shows one of them, too.
    assert told[0]["id"] == "my__map.rows_all" and len(told) == 1
    (rows,) = measured.get(f"{path}?get=my__map.shop.north_east.rows_read")
    low, high = rows["min"], rows["max"]
    assert (low + high, rows["sum"], rows["avg"]) == (7, 7, 3.5)
    assert rows["skew"] == pytest.approx(100 * (high - low) / 2 / 3.5)
    (some,) = measured.get(f"{path}?get=my__map.sizes.size_sum&agg=MAX,sum")
    assert some.keys() == {"id", "max", "sum"} and some["sum"] == 28
    (first,) = measured.get(f"{path}?get=my__map.sizes.size_sum&agg=sum&subtasks=0")
    (second,) = measured.get(f"{path}?get=my__map.sizes.size_sum&agg=sum&subtasks=1-1")
    assert first["sum"] + second["sum"] == 28 and first["sum"] < 28
    for wrong in ("agg=median", "subtasks=a", "subtasks=0-", "subtasks="):
        assert measured.call("GET", f"{path}?get=x&{wrong}").status == 400, wrong
    assert measured.call("GET", f"{path}?get=x&subtasks=0-5").status == 404


def test_accumulators(measured: Served) -> None:
    assert measured.get(f"/jobs/{JOB}/accumulators") == {
        "job-accumulators": [],
        "user-task-accumulators": [{"name": "total", "type": "IntCounter", "value": "28"}],
        "serialized-user-task-accumulators": {},
    }


def test_prometheus(measured: Served) -> None:
    text = measured.call("GET", "/metrics").body
    prefix = "flink_taskmanager_job_task_operator_"
    families = {family.name: family for family in text_string_to_metric_families(text) if prefix in family.name}
    assert families.keys() == {
        prefix + name
        for name in (
            "shop_rows_read", "sizes_size_count", "sizes_size_sum", "sizes_size_min", "sizes_size_max",
            "sizes_size_mean", "job_id_1st_events", "job_id_1st_events_count", "open", "rows_all", "rows:all",
        )
    }  # fmt: skip
    samples = families[prefix + "shop_rows_read"].samples
    assert sum(sample.value for sample in samples) == 7
    labels = samples[0].labels
    assert labels["shop"] == "north east" and labels["operator_name"] == "my: map"
    assert (labels["job_id"], labels["job_name"], labels["subtask_index"]) == (JOB, "measured", "0")
    assert labels.keys() == {
        "job_id", "job_name", "task_id", "task_name", "operator_id", "operator_name", "subtask_index", "shop",
    }  # fmt: skip
    own = families[prefix + "job_id_1st_events"].samples[0].labels
    assert (own["job_id"], own["_job_id"], own["_1st"]) == (JOB, "mine", "x")
    assert [sample.value for sample in families[prefix + "open"].samples] == [1, 1]
    lines = [line.partition("}")[0] for line in text.splitlines() if line.startswith(prefix)]
    assert len(lines) == len(set(lines))


def test_the_history_keeps_them(in_process: InProcessEngine, tmp_path: Path, later: Any) -> None:
    with serving(tmp_path, start=start) as served:
        served.wait(lambda: served.get(f"/jobs/{JOB}/accumulators")["user-task-accumulators"])
        vertex = vertex_of(served)
        served.end()
        paths = [f"{vertex}/metrics", f"{vertex}/subtasks/metrics"]
        known = {path: served.get(path) for path in paths}
        one = served.get(f"{vertex}/metrics?get=0.my__map.rows_all")
        over = served.get(f"{vertex}/subtasks/metrics?get=my__map.rows_all&agg=sum")
        accumulators = served.get(f"/jobs/{JOB}/accumulators")
    assert {path: later(path).body for path in paths} == known
    assert later(f"{vertex}/metrics?get=0.my__map.rows_all").body == one
    assert later(f"{vertex}/subtasks/metrics?get=my__map.rows_all&agg=sum").body == over
    assert later(f"/jobs/{JOB}/accumulators").body == accumulators
    assert later(f"{vertex}/subtasks/metrics?subtasks=0").status == 404
    assert later(f"{vertex}/subtasks/0/metrics").status == 404


@needs_chromium
@pytest.mark.slow
def test_the_page_shows_them(measured: Served, tmp_path: Path) -> None:
    page = _show(measured, tmp_path / "browser", f"#token={measured.server.token}")
    row = re.search(r'<tr data-metric="my__map.sizes.size_sum">(.*?)</tr>', page)
    assert row is not None and ">28<" in row[1]
    assert "Metrics of functions" in page and 'data-metric="numRecordsIn"' not in page
