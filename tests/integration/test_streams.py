"""Spark's streams as sources, on local Spark."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.common import Row, Types
from holdfast.common.job_client import JobClient
from holdfast.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.datastream.functions import MapFunction
from holdfast.errors import ProgramError
from holdfast.spark import engine
from holdfast.spark.epoch_runner import SparkEpochRunner
from holdfast.spark.internals.file_source_log import cut_log
from holdfast.spark.internals.stream_log import SourcePosition, StreamPosition, StreamSource, write_fork
from holdfast.state.outcomes import Fate
from holdfast.testing.chaos.processes import wait_until
from tests.integration.programs import environment, published

pytestmark = [pytest.mark.usefixtures("spark"), pytest.mark.slow]

OUT = Types.ROW_NAMED(["k", "n"], [Types.LONG(), Types.LONG()])


def write_files(directory: Path, first: int, count: int, rows: int = 20) -> None:
    """Files of one micro-batch each, with rows of seven keys."""
    directory.mkdir(exist_ok=True)
    for number in range(first, first + count):
        lines = [json.dumps({"k": value % 7, "v": value}) for value in range(number * rows, (number + 1) * rows)]
        part = directory / f".{number:04}"
        part.write_text("\n".join(lines))
        # Spark takes files by their time in milliseconds; those of the same come in any order.
        os.utime(part, (1_700_000_000 + number,) * 2)
        part.rename(directory / f"{number:04}.json")


def read_files(spark: Any, directory: Path) -> Any:
    return spark.readStream.schema("k long, v long").option("maxFilesPerTrigger", 1).json(str(directory))


def counted(files: int, rows: int = 20) -> list[tuple[int, int]]:
    """What counting the rows of each key must give."""
    total = files * rows
    return sorted((k, n) for k in range(7) for n in range(1, len(range(k, total, 7)) + 1))


def count(row: Any, seen: int | None) -> tuple[Row, int]:
    seen = (seen or 0) + 1
    return Row(k=row.k, n=seen), seen


def settings(directory: Path, **changes: str) -> dict[str, str]:
    return {
        "holdfast.job-id": "job",
        "holdfast.state.local-dir": str(directory / "local"),
        "execution.checkpointing.dir": str(directory / "chk"),
        "execution.checkpointing.savepoint-dir": str(directory / "savepoints"),
        "execution.checkpointing.interval": "10 ms",
        "execution.checkpointing.num-retained": "30",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.delay": "10 ms",
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        **changes,
    }


def program(given: dict[str, str], frame: Any, out: Path) -> StreamExecutionEnvironment:
    env = environment(**given)
    stream = env.from_data_frame(frame, "files").uid("files")
    counts = stream.key_by(lambda row: row.k, Types.LONG()).map_with_state(count, state_type=int, output_type=OUT)
    counts.uid("count").sink_to(FileSink.json(str(out))).uid("sink")
    return env


def counting(given: dict[str, str], frame: Any, out: Path) -> JobClient:
    return program(given, frame, out).execute_async("streams")


def wait_for_rows(out: Path, rows: int) -> None:
    wait_until(lambda: len(published(out)) == rows or None, 90, f"{rows} published rows")


def published_or_failed(job: JobClient, out: Path, rows: int) -> list[Any] | None:
    """All rows once they are published, or what there is when an attempt has failed."""
    found = published(out)
    return found if len(found) == rows or job.get_history().failures else None


def test_spark_goes_on_from_a_log_of_files_that_was_cut(spark: Any, tmp_path: Path) -> None:
    """Enough files for compact ones, of which the newest holds more than the fork may have."""
    source = tmp_path / "in"
    write_files(source, 0, 25, rows=1)
    frame = spark.readStream.schema("k long, v long").json(str(source))
    entries = [
        json.dumps({"path": path.as_uri(), "timestamp": path.stat().st_mtime_ns // 1_000_000, "batchId": number})
        for number, path in enumerate(sorted(source.iterdir()))
    ]
    log = {"24.compact": "\n".join(["v1", *entries]).encode()}
    kind = StreamSource("json", lists_files=True)
    for last in (5, 23):
        offsets = [json.dumps({"logOffset": last - 1}), json.dumps({"logOffset": last})]
        cut = SourcePosition("json", offsets[0], offsets[1], cut_log(log, last))
        fork = tmp_path / f"fork-{last}"
        rows: list[int] = []
        write_fork(fork, [StreamPosition(last, "{}", "{}", (cut,))], [[kind]])
        writer = frame.writeStream.foreachBatch(lambda part, _, rows=rows: rows.extend(r.v for r in part.collect()))
        query = writer.option("checkpointLocation", fork.as_uri()).trigger(availableNow=True).start()
        assert query.awaitTermination(60)
        assert sorted(rows) == list(range(last + 1, 25))


def test_an_older_checkpoint_and_a_savepoint_rewind_a_stream(spark: Any, tmp_path: Path) -> None:
    source, frame_of = tmp_path / "in", lambda: read_files(spark, tmp_path / "in")
    write_files(source, 0, 3)
    job = counting(settings(tmp_path), frame_of(), tmp_path / "out")
    wait_for_rows(tmp_path / "out", 60)
    savepoint = job.trigger_savepoint(str(tmp_path / "savepoints")).result(60)
    write_files(source, 3, 2)
    wait_for_rows(tmp_path / "out", 100)
    # A query that somebody else stops has not come to its end: the job goes on with another one.
    (query,) = spark.streams.active
    query.stop()
    write_files(source, 5, 1)
    wait_for_rows(tmp_path / "out", 120)
    assert published(tmp_path / "out") == counted(6)
    job.cancel().result(60)
    rehearsed = holdfast.plan_restore(program(settings(tmp_path), frame_of(), tmp_path / "none"), savepoint)
    assert rehearsed.refusal is None
    assert [state.fate for one in rehearsed.operators for state in one.states] == [Fate.KEPT] * 2
    older = min((tmp_path / "chk" / "job").glob("chk-*/_metadata"), key=lambda path: path.stat().st_mtime_ns).parent
    for number, path in enumerate((savepoint, str(older))):
        out = tmp_path / f"again-{number}"
        given = {"holdfast.job-id": f"again-{number}", "execution.state-recovery.path": path}
        given["holdfast.stream.available-now"] = "true"
        again = counting(settings(tmp_path, **given), frame_of(), out)
        again.get_job_execution_result().result(120)
        before = 60 if path == savepoint else 120 - len(published(out))
        # Each key goes on counting where the snapshot left it, with the rows behind the snapshot and no others.
        assert published(out) == sorted(set(counted(6)) - set(counted(before // 20)))
        assert before % 20 == 0
        assert before < 120


@pytest.mark.spark(internals=True, reason="a plan is kept only by them")
def test_one_plan_for_micro_batches_of_any_number_of_partitions(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark makes two partitions of four files, and one of one file."""
    planned: list[Any] = []
    partitions: set[int] = set()

    class Watched(SparkEpochRunner):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            build = self._frames.messages
            self._frames.messages = lambda sent: planned.append(len(sent)) or build(sent)  # type: ignore[method-assign]

        def run(self, spec: Any, slices: Any) -> Any:
            partitions.update(spec.partitions.values())
            return super().run(spec, slices)

    monkeypatch.setattr(engine, "SparkEpochRunner", Watched)
    write_files(tmp_path / "in", 0, 9)
    frame = spark.readStream.schema("k long, v long").option("maxFilesPerTrigger", 4).json(str(tmp_path / "in"))
    job = counting(settings(tmp_path, **{"holdfast.stream.available-now": "true"}), frame, tmp_path / "out")
    job.get_job_execution_result().result(120)
    assert published(tmp_path / "out") == counted(9)
    assert partitions == {1, 2}
    # One for epochs with rows, one for those without.
    assert len(planned) == 2
    assert len(job.get_history().epochs) > 3


def shuffled(spark: Any, directory: Path) -> JobClient:
    """A job over a stream that Spark shuffles, when it is done."""
    write_files(directory / "in", 0, 8)
    names = spark.createDataFrame([(k, k) for k in range(7)], "k long, other long").repartition(2)
    frame = read_files(spark, directory / "in").repartition(3, "v").join(names, "k").select("k", "v")
    job = counting(settings(directory, **{"holdfast.stream.available-now": "true"}), frame, directory / "out")
    job.get_job_execution_result().result(120)
    return job


def test_a_stream_that_spark_shuffles(spark: Any, tmp_path: Path) -> None:
    """Shuffles of a micro-batch are not deleted while they are read."""
    job = shuffled(spark, tmp_path)
    assert published(tmp_path / "out") == counted(8)
    assert not job.get_history().failures


@pytest.mark.spark(min="4.1", reason="before Spark 4.1 the driver's garbage collection deletes shuffles")
def test_spark_deletes_the_shuffles_of_a_micro_batch_when_it_goes_on(spark: Any, tmp_path: Path) -> None:
    local = Path(spark.sparkContext.getConf().get("spark.local.dir", ""))
    before = set(local.rglob("shuffle_*"))
    shuffled(spark, tmp_path)
    # Those of an anchor, and of the static side, stay until Spark finds that nobody needs them.

    def shuffles_left() -> int:
        return len({file.name.split("_")[1] for file in set(local.rglob("shuffle_*")) - before})

    wait_until(lambda: shuffles_left() <= 3 or None, 20, "files of shuffles to be deleted")


class WaitsForSpark(MapFunction):
    """Rows of the first micro-batch pass when Spark has begun the second."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def map(self, value: Any) -> Any:
        if value.v < 20:
            second = "holdfast-run-*/*/holdfast-stream-*/query/offsets/1"
            wait_until(lambda: any(self.directory.glob(second)) or None, 20, "Spark to begin the second micro-batch")
        return value


@pytest.mark.spark(internals=True, reason="without them a micro-batch is planned with its epoch")
def test_spark_prepares_a_micro_batch_while_an_epoch_runs(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkpoint that is taken then has the position of the epoch, not that of Spark."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    write_files(tmp_path / "in", 0, 3)

    def start(out: Path, **changes: str) -> JobClient:
        env = environment(**settings(tmp_path, **changes))
        stream = env.from_data_frame(read_files(spark, tmp_path / "in"), "files").uid("files")
        waited = stream.map(WaitsForSpark(tmp_path), stream.get_type()).uid("wait")
        counts = waited.key_by(lambda row: row.k, Types.LONG()).map_with_state(count, state_type=int, output_type=OUT)
        counts.uid("count").sink_to(FileSink.json(str(out))).uid("sink")
        return env.execute_async("ahead")

    job = start(tmp_path / "out")
    try:
        rows_of_all = wait_until(lambda: published_or_failed(job, tmp_path / "out", 60), 90, "60 published rows")
    finally:
        job.cancel().result(60)
    assert rows_of_all == counted(3)
    left = set()
    for path in (tmp_path / "chk" / "job").glob("chk-*/_metadata"):
        name = f"from-{path.parent.name}"
        given = {"holdfast.job-id": name, "holdfast.stream.available-now": "true"}
        again = start(tmp_path / name, **given, **{"execution.state-recovery.path": str(path.parent)})
        again.get_job_execution_result().result(120)
        rows = published(tmp_path / name)
        left.add(len(rows))
        assert rows == sorted(set(counted(3)) - set(counted((60 - len(rows)) // 20)))
    assert 40 in left, "no checkpoint was taken behind the first micro-batch alone"


def test_a_stream_beside_other_sources(spark: Any, tmp_path: Path) -> None:
    write_files(tmp_path / "in", 0, 2)
    env = environment(**{"holdfast.stream.available-now": "true"})
    stream = env.from_data_frame(read_files(spark, tmp_path / "in")).map(lambda row: row.v, Types.LONG())
    bounded = env.from_data_frame(spark.range(100, 110)).map(lambda row: row.id, Types.LONG())
    own = env.from_collection([200, 201, 202], Types.LONG())
    rows = stream.union(bounded, own).execute_and_collect()
    assert sorted(rows) == [*range(40), *range(100, 110), 200, 201, 202]


@pytest.mark.spark(min="4.0", reason="Sources in Python begin with Spark 4.0")
def test_a_python_source_is_told_of_rows_only_when_a_checkpoint_holds_them(spark: Any, tmp_path: Path) -> None:
    from tests.integration.stream_sources import TICKS, Ticks

    spark.dataSource.register(Ticks)
    frame = spark.readStream.format("ticks").option("commits", str(tmp_path / "commits"))
    frame = frame.option("published", str(tmp_path / "out")).load()
    job = counting(settings(tmp_path, **{"execution.checkpointing.interval": "1 h"}), frame, tmp_path / "out")
    wait_for_rows(tmp_path / "out", TICKS)
    job.cancel().result(60)
    assert published(tmp_path / "out") == counted(1, rows=TICKS)
    told = [tuple(map(int, line.split())) for line in (tmp_path / "commits").read_text().splitlines()]
    assert max(end for end, _ in told) >= TICKS - 10
    assert all(seen >= end for end, seen in told), told


def test_streams_that_could_not_be_rewound_are_refused(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    env, frame = environment(), read_files(spark, tmp_path / "in")
    with pytest.raises(ProgramError, match=r"'counts' has an operator of Spark that keeps state \(Aggregate\)"):
        env.from_data_frame(frame.groupBy("k").count(), "counts")
    cleaned = spark.readStream.schema("k long").option("cleanSource", "DELETE").json(str(tmp_path / "in"))
    with pytest.raises(ProgramError, match="'cleaned' reads files with cleanSource=DELETE"):
        env.from_data_frame(cleaned, "cleaned")
    with pytest.raises(ProgramError, match="'twice' reads the same source object a second time"):
        env.from_data_frame(frame.union(frame), "twice")
    env.from_data_frame(frame, "endless").print()
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    with pytest.raises(ProgramError, match="in BATCH mode, and the source 'endless' is not bounded"):
        env.execute()
