"""Snapshots in which positions of sources are pickled, as they were before sources declared types of them."""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from holdfast.connectors.discard import DiscardSink
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.datastream.engines import engines_from
from holdfast.errors import PickledStateError
from holdfast.runtime.epoch import EpochSpec
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import published
from tests.job import pickled_positions_job as job

FIXTURES = Path(__file__).parents[1] / "fixtures/pickled-positions"
#: All three sources stand behind their first 30 rows in them, the number sequence behind those of each of two ranges.
FORMS = {"checkpoint": FIXTURES / "checkpoint/chk-3", "savepoint": FIXTURES / "savepoint"}
READ_BEFORE = [*range(30), *range(100, 130), *range(30), *range(30)]
PATH = "execution.state-recovery.path"
ALLOW = "holdfast.state.allow-pickle"


class _Untouchable:
    """Stands in the place of Spark: whoever asks it for anything fails."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"the engine was asked for its {name}")


@pytest.fixture
def untouchable() -> Iterator[None]:
    with engines_from(lambda graph, settings: _Untouchable()):  # type: ignore[arg-type,return-value]  # it is none
        yield


def rest() -> list[tuple[int, int]]:
    """What is published behind a snapshot."""
    before = [number % job.KEYS for number in READ_BEFORE]
    return [(key, seen) for key, seen in job.expected() if seen > before.count(key)]


@pytest.mark.parametrize("form", FORMS)
def test_it_is_refused_before_there_is_an_engine(untouchable: None, tmp_path: Path, form: str) -> None:
    settings = {PATH: str(FORMS[form]), "holdfast.job-id": "next"}
    with pytest.raises(PickledStateError) as refused:
        job.start(tmp_path, DiscardSink(), **settings)
    for uid in ("numbers", "letters", "items"):
        assert f"(uid {uid}): operator union list '_positions' of PICKLED_BYTE_ARRAY" in str(refused.value)
    assert "'count'" not in str(refused.value), "its state is declared"
    assert "--allow-pickle" in str(refused.value) and ALLOW in str(refused.value)


@pytest.mark.parametrize("form", FORMS)
def test_where_it_is_allowed_sources_go_on_exactly_where_they_were(
    in_process: InProcessEngine, tmp_path: Path, form: str
) -> None:
    settings = {PATH: str(FORMS[form]), "holdfast.job-id": "next", ALLOW: "true"}
    job.start(tmp_path, FileSink.json(str(tmp_path / "out")), **settings).get_job_execution_result().result(60)
    assert published(tmp_path / "out") == rest()


def test_a_job_goes_on_from_such_checkpoints_of_its_own(in_process: InProcessEngine, tmp_path: Path) -> None:
    shutil.copytree(FORMS["checkpoint"], tmp_path / "chk/job/chk-3")
    job.start(tmp_path, FileSink.json(str(tmp_path / "out"))).get_job_execution_result().result(60)
    assert published(tmp_path / "out") == rest()


def test_from_then_on_nothing_is_pickled(
    in_process: InProcessEngine, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Over a savepoint, and over failures: kills of tasks whose epochs are repeated."""
    begun: list[Any] = []

    def stop(spec: EpochSpec) -> None:
        while not begun:
            time.sleep(0.001)
        if len(begun) == 1:
            begun.append(begun[0].stop_with_savepoint(False, str(tmp_path / "savepoints")))

    settings = {"holdfast.job-id": "next", ALLOW: "true", PATH: str(FORMS["savepoint"])}
    sink = FileSink.json(str(tmp_path / "out"))
    in_process.before_epoch = stop
    with caplog.at_level(logging.WARNING):
        begun.append(job.start(tmp_path, sink, **settings))
        begun[0].get_job_execution_result().result(60)
    path = begun[1].result(30)
    assert "pickled" not in caplog.text
    columns = {file.parents[2].name: pq.read_table(file).column_names for file in Path(path).glob("*/list/*/*.parquet")}
    table = pq.read_table(next(Path(path).glob("numbers/list/_positions/*.parquet")))
    assert columns.keys() >= {"numbers", "letters", "items"}
    assert set(table.column("element").to_pylist()[0]) == {"first", "last"}
    failed: set[int] = set()

    def fail(spec: EpochSpec) -> None:
        if spec.epoch not in failed and len(failed) < 3:
            failed.add(spec.epoch)
            raise RuntimeError("the driver hears nothing of this epoch")

    in_process.before_epoch, in_process.after_epoch = lambda spec: None, fail
    again = {"holdfast.job-id": "last", PATH: path, "restart-strategy.type": "fixed-delay"}
    again |= {"restart-strategy.fixed-delay.attempts": "5", "restart-strategy.fixed-delay.delay": "1 ms"}
    job.start(tmp_path, sink, **again).get_job_execution_result().result(60)
    assert published(tmp_path / "out") == rest() and len(failed) == 3
