"""Keys of another type: nothing stands in their way where none are stored."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import plan_restore
from holdfast.common import TypeInformation, Types, WatermarkStrategy
from holdfast.datastream import StreamExecutionEnvironment
from holdfast.errors import StateMigrationError
from tests.graph.restored_jobs import FORMS, Build, StoredJob, environment
from tests.integration.programs import PAIR, Scripted
from tests.runtime.local_job import ListSink


def without_state(key_type: TypeInformation) -> Build:
    def build(env: StreamExecutionEnvironment) -> None:
        source = Scripted([[(1, 1)], [], [(2, 2)]], ends=False)
        rows = env.from_source(source, WatermarkStrategy.no_watermarks(), "rows", PAIR).uid("rows")
        rows.key_by(lambda row: row[0], key_type).map(lambda row: row, PAIR).uid("map").sink_to(ListSink()).uid("sink")

    return build


@pytest.mark.parametrize("form", FORMS)
def test_the_key_type_of_an_operator_without_state_may_change(tmp_path: Path, form: str) -> None:
    job = StoredJob(environment(without_state(Types.LONG())), tmp_path)
    job.run()
    path, _ = job.stored(1, form)
    job.close()
    assert plan_restore(environment(without_state(Types.INT())), path).possible
    again = StoredJob(environment(without_state(Types.INT())), tmp_path, path)
    assert again.rows() == [(2, 2)]
    again.close()


def with_state(key_type: TypeInformation) -> Build:
    def build(env: StreamExecutionEnvironment) -> None:
        source = Scripted([[(1, 1)], [], [(2, 2)]], ends=False)
        rows = env.from_source(source, WatermarkStrategy.no_watermarks(), "rows", PAIR).uid("rows")
        keyed = rows.key_by(lambda row: row[0], key_type)
        counted = keyed.map_with_state(lambda row, seen: (row, row[1]), state_type=int, output_type=PAIR).uid("map")
        counted.sink_to(ListSink()).uid("sink")

    return build


@pytest.mark.parametrize("backend", ["heap", "rocksdb"])
@pytest.mark.parametrize("form", FORMS)
def test_keys_that_are_stored_keep_their_type(tmp_path: Path, form: str, backend: str) -> None:
    given = {"state.backend.type": backend}
    job = StoredJob(environment(with_state(Types.LONG()), **given), tmp_path)
    job.run()
    path, _ = job.stored(1, form)
    job.close()
    assert not plan_restore(environment(with_state(Types.INT()), **given), path).possible
    again = StoredJob(environment(with_state(Types.INT()), **given), tmp_path, path)
    with pytest.raises(StateMigrationError, match="key"):
        again.run()
    again.close()
