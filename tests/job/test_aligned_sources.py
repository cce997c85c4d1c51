"""Sources that wait for each other in event time: the bounds that a driver gives, and jobs in which they hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from holdfast.common import Duration, TimestampAssigner, Types, WatermarkStrategy
from holdfast.connectors.reading import Budget
from holdfast.datastream import ProcessJoinFunction
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.datastream.connectors.number_seq import NumberSequenceSource
from holdfast.errors import EpochError, ProgramError
from holdfast.job.aligned_sources import AlignedSources
from holdfast.runtime.alignment import UNBOUNDED, UNKNOWN, WatermarkAlignment
from holdfast.runtime.batch import Batch, Origin
from holdfast.runtime.endpoints import SourceOperator
from holdfast.runtime.epoch import Acknowledgement, EpochSpec, OperatorProgress
from holdfast.runtime.interval_join import IntervalJoinOperator
from holdfast.runtime.operator import MIN_WATERMARK
from holdfast.runtime.plan import OperatorSpec
from holdfast.runtime.source import ReaderContext, ReadLimit, Source, SourceReader
from holdfast.state.descriptors import MapStateDescriptor
from holdfast.state.handles import OperatorRecord, SubtaskSnapshot
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import environment, published
from tests.job.counting import settings
from tests.job.ticking import PAIR, ROW, Ticks, Time, WithWatermark, strategy

# -- bounds


def timed(name: str, parallelism: int = 1, group: str | None = "g", drift: int = 10) -> OperatorSpec:
    alignment = None if group is None else WatermarkAlignment(group, drift)
    return OperatorSpec(name, name, SourceOperator, b"", parallelism, 128, ROW, alignment=alignment)


def told(sources: AlignedSources, *progress: tuple[Any, ...]) -> dict[str, tuple[int, ...]]:
    """The bounds when subtasks (name, subtask, watermark, idle, ended) have told where they are."""
    found = []
    for name, subtask, watermark, *rest in progress:
        idle, ended = [*rest, False, False][:2]
        found.append(OperatorProgress(name, subtask, 0, 0, watermark, ended, idle))
    sources.take_in([Acknowledgement(0, 0, 0, 1, "n", {}, progress=tuple(found))])
    return sources.bounds()


def test_each_waits_for_the_slowest_of_the_others() -> None:
    sources = AlignedSources([timed("a"), timed("b"), timed("c", drift=100)])
    assert told(sources, ("a", 0, 50), ("b", 0, 7), ("c", 0, 90)) == {"a": (17,), "b": (60,), "c": (107,)}


def test_subtasks_of_one_source_wait_for_each_other() -> None:
    assert told(AlignedSources([timed("a", 2)]), ("a", 0, 50), ("a", 1, 7)) == {"a": (17, 60)}


def test_groups_know_nothing_of_each_other() -> None:
    sources = AlignedSources([timed("a"), timed("b", group="other"), timed("plain", group=None)])
    assert told(sources, ("a", 0, 50), ("b", 0, 7), ("plain", 0, 1)) == {"a": (UNBOUNDED,), "b": (UNBOUNDED,)}


@pytest.mark.parametrize(("idle", "ended"), [(True, False), (False, True)])
def test_idle_and_ended_sources_leave_the_minimum_and_wait_for_the_rest(idle: bool, ended: bool) -> None:
    sources = AlignedSources([timed("a"), timed("b")])
    assert told(sources, ("a", 0, 50), ("b", 0, 7, idle, ended)) == {"a": (UNBOUNDED,), "b": (60,)}
    assert told(sources, ("b", 0, 8, False, False))["a"] == (18,)


def test_where_nobody_has_said_anything_the_first_rows_say_where_to_stop() -> None:
    sources = AlignedSources([timed("a"), timed("b")])
    assert sources.bounds() == {"a": (UNKNOWN,), "b": (UNKNOWN,)}
    # One that has no rows at all does not hold the other back for ever.
    assert told(sources, ("a", 0, 50)) == {"a": (UNKNOWN,), "b": (60,)}


def record(name: str, *subtasks: SubtaskSnapshot) -> OperatorRecord:
    return OperatorRecord(name, None, name, len(subtasks), 128, subtasks)


def test_a_restored_job_knows_where_its_sources_were() -> None:
    restored = [
        record("a", SubtaskSnapshot("a", 0, watermark=50), SubtaskSnapshot("a", 1, watermark=60)),
        record("b", SubtaskSnapshot("b", 0, watermark=7)),
        record("c", SubtaskSnapshot("c", 0, watermark=0, finished=True)),
        record("x", SubtaskSnapshot("x", 0, watermark=-5)),
    ]
    assert AlignedSources([timed("a", 2), timed("b"), timed("c")], restored).bounds() == {
        "a": (17, 17),
        "b": (60,),
        "c": (17,),
    }
    # With another parallelism each begins where the slowest was.
    assert AlignedSources([timed("a", 3), timed("b")], restored).bounds() == {"a": (17, 17, 17), "b": (60,)}
    # One that had no rows yet has said nothing.
    assert AlignedSources([timed("d"), timed("e")], [record("d", SubtaskSnapshot("d", 0))]).bounds() == {
        "d": (UNKNOWN,),
        "e": (UNKNOWN,),
    }


def test_times_at_the_end_of_the_scale_do_not_overflow() -> None:
    sources = AlignedSources([timed("a"), timed("b")])
    assert told(sources, ("a", 0, (1 << 63) - 5), ("b", 0, MIN_WATERMARK))["b"] == (UNBOUNDED,)


# -- jobs


class OwnTime(TimestampAssigner):
    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return value


OWN_TIME = (
    WatermarkStrategy.for_monotonous_timestamps()
    .with_timestamp_assigner(OwnTime())
    .with_watermark_alignment("numbers", Duration.of_seconds(1), Duration.of_millis(200))
)


class Pairs(ProcessJoinFunction):
    def process_element(self, left: Any, right: Any, ctx: ProcessJoinFunction.Context) -> Iterable[Any]:
        yield left[1], right[1]


#: One goes on by 1 ms with a row, the other by 50: all of it would be read long before the first is through.
SLOW, FAST = range(0, 2_000), range(0, 2_000 * 50, 50)
DRIFT, CHUNK = 400, 10


def expected() -> list[tuple[int, int]]:
    return sorted((slow, fast) for slow in SLOW for fast in range(0, max(FAST) + 1, 50) if abs(fast - slow) <= 20)


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """(attempt, rows) in the state of the interval join at the end of each of its epochs."""
    counts: list[tuple[int, int]] = []
    end_epoch = IntervalJoinOperator.end_epoch

    def counting(self: IntervalJoinOperator, end: Any) -> Any:
        rows = 0

        def count(key: Any, state: Any) -> None:
            nonlocal rows
            rows += sum(len(each) for each in state.values())

        for name in ("left-buffer", "right-buffer"):
            descriptor = MapStateDescriptor(name, Types.LONG(), Types.LIST(ROW))
            self.keyed_state.apply_to_all_keys(descriptor, count)
        counts.append((self.environment.attempt, rows))
        return end_epoch(self, end)

    monkeypatch.setattr(IntervalJoinOperator, "end_epoch", counting)
    return counts


def join(tmp_path: Path, drift: int | None, **changes: str) -> Any:
    """The slow source gives some rows in an epoch, the fast one as many as it may."""
    env = environment(**settings(tmp_path, **{"holdfast.epoch.max-rows": "500", **changes})).set_parallelism(1)
    sources = [Ticks("slow", SLOW, CHUNK, an_epoch=200), Ticks("fast", FAST, CHUNK)]
    slow, fast = (
        env.from_source(source, strategy(drift), source.name).uid(source.name).key_by(lambda row: 0, Types.INT())
        for source in sources
    )
    joined = slow.interval_join(fast).between(-20, 20).process(Pairs(), PAIR).uid("join")
    joined.sink_to(FileSink.json(str(tmp_path / "out"))).uid("out")
    return env.execute_async("join")


def test_alignment_bounds_the_state_of_a_join(
    in_process: InProcessEngine, tmp_path: Path, kept: list[tuple[int, int]]
) -> None:
    join(tmp_path / "free", None).get_job_execution_result().result(60)
    free = max(rows for _, rows in kept)
    kept.clear()
    join(tmp_path / "aligned", DRIFT).get_job_execution_result().result(60)
    aligned = max(rows for _, rows in kept)
    assert free > 1_500
    # The rows of the fast one that are ahead by as much as it may be, with a batch more; and those within the interval.
    assert aligned <= DRIFT // 50 + 2 * CHUNK + 50
    assert published(tmp_path / "free" / "out") == published(tmp_path / "aligned" / "out") == expected()


def test_alignment_holds_over_failures(
    in_process: InProcessEngine, tmp_path: Path, kept: list[tuple[int, int]]
) -> None:
    failed: set[int] = set()

    def after_epoch(spec: EpochSpec) -> None:
        done = sum(attempt == spec.attempt for attempt, _ in in_process.epochs)
        if spec.attempt <= 3 and done == 4 and spec.attempt not in failed:
            failed.add(spec.attempt)
            raise EpochError("a worker was lost")

    in_process.after_epoch = after_epoch
    client = join(tmp_path, DRIFT)
    client.get_job_execution_result().result(60)
    assert client.get_history().restarts == 3
    assert published(tmp_path / "out") == expected()
    for attempt, counts in groupby(kept, key=lambda each: each[0]):
        # From its first epoch on: what a source may read is known from the checkpoint.
        assert max(rows for _, rows in counts) <= DRIFT // 50 + 2 * CHUNK + 50, attempt


@pytest.mark.parametrize("chaining", ["true", "false"])
def test_a_source_stops_in_its_task_whatever_is_chained(
    in_process: InProcessEngine, tmp_path: Path, kept: list[tuple[int, int]], chaining: str
) -> None:
    client = join(tmp_path, DRIFT, **{"pipeline.operator-chaining.enabled": chaining})
    client.get_job_execution_result().result(60)
    assert max(rows for _, rows in kept) <= DRIFT // 50 + 2 * CHUNK + 50
    assert published(tmp_path / "out") == expected()


def test_a_source_that_waits_reads_on_when_the_slow_one_has_ended(in_process: InProcessEngine, tmp_path: Path) -> None:
    """Its waiting is neither its end nor its idleness: no row comes late."""
    in_process.step = 1
    env = environment(**settings(tmp_path)).set_parallelism(1)
    # The fast one waits for ten epochs, which is longer than what makes a source idle.
    first = env.from_source(Ticks("slow", range(1_000), 40, an_epoch=40), strategy(10, idleness=60), "slow").uid("s")
    second = env.from_source(Ticks("fast", range(2_000), 400), strategy(10, idleness=60), "fast").uid("f")
    met = first.union(second).process(WithWatermark(), PAIR).uid("met")
    met.sink_to(FileSink.json(str(tmp_path / "out"))).uid("out")
    client = env.execute_async("ended")
    client.get_job_execution_result().result(60)
    rows = published(tmp_path / "out")
    assert len(rows) == 1_000 + 2_000
    assert [(time, watermark) for time, watermark in rows if time <= watermark] == []


class Partitions(Source):
    """One subtask that reads a slow split and a fast one in turns, unless one of them waits; as Kafka's does."""

    bounded = True
    max_parallelism = 1

    def output_type(self) -> Any:
        return ROW

    def position_type(self) -> Any:
        return Types.TUPLE([Types.STRING(), Types.INT()])

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return _PartitionsReader(dict(context.restored or {"slow": 0, "fast": 0}))


_STEPS = {"slow": 1, "fast": 50}
_ROWS_OF_SPLIT = 600


class _PartitionsReader(SourceReader):
    def __init__(self, given: dict[str, int]) -> None:
        self._given = given

    def read(self, limit: ReadLimit) -> Iterator[Batch]:
        budget = Budget(limit)
        for _ in range(8):
            left = [split for split, given in self._given.items() if given < _ROWS_OF_SPLIT]
            for split in (split for split in left if not limit.waits(split) and budget.next_chunk()):
                first = self._given[split]
                times = [number * _STEPS[split] for number in range(first, first + CHUNK)]
                self._given[split] += CHUNK
                budget.spend(CHUNK)
                batch = Batch([(split, time) for time in times])
                batch.origin = Origin(split, frozenset(left), [-1] * CHUNK)
                yield batch
        self.ended = all(given >= _ROWS_OF_SPLIT for given in self._given.values())

    def positions(self) -> list[tuple[str, int]]:
        return sorted(self._given.items())


@pytest.mark.parametrize("drift", [None, 300])
def test_splits_of_one_subtask_wait_for_each_other(
    in_process: InProcessEngine, tmp_path: Path, drift: int | None
) -> None:
    in_process.step = 1
    failed: set[int] = set()

    def after_epoch(spec: EpochSpec) -> None:
        if spec.epoch in (3, 9) and spec.epoch not in failed:
            failed.add(spec.epoch)
            raise EpochError("a worker was lost")

    in_process.after_epoch = after_epoch
    env = environment(**settings(tmp_path)).set_parallelism(1)
    rows = env.from_source(Partitions(), strategy(drift, idleness=200), "splits").uid("splits")
    rows.process(WithWatermark(), PAIR).uid("met").sink_to(FileSink.json(str(tmp_path / "out"))).uid("out")
    env.execute("splits")
    met = published(tmp_path / "out")
    assert [time for time, _ in met] == sorted(n * step for step in _STEPS.values() for n in range(_ROWS_OF_SPLIT))
    assert all(time > watermark for time, watermark in met)
    # While the slow one still has rows, a row is that far ahead of what has come of it.
    leads = [time - watermark for time, watermark in met if _ROWS_OF_SPLIT - CHUNK > watermark > 0]
    assert (max(leads) <= 300 + 2 * CHUNK * 50) is (drift is not None)


def test_what_cannot_be_aligned_is_refused() -> None:
    env = environment()
    rows = env.from_collection([("a", 1)], ROW)
    with pytest.raises(ProgramError, match=r"'g'.*behind 'Map'.*right behind the source"):
        rows.map(lambda row: row, ROW).assign_timestamps_and_watermarks(strategy(10))
    with pytest.raises(ProgramError, match="right behind the source"):
        rows.rebalance().assign_timestamps_and_watermarks(strategy(10))
    # Without watermarks there is nothing to align: nobody waits for it.
    without = WatermarkStrategy.no_watermarks().with_timestamp_assigner(Time())
    rows.assign_timestamps_and_watermarks(without.with_watermark_alignment("g", Duration.of_millis(1)))
    assert all(node.alignment is None for node in env.get_stream_graph().nodes)
    plain = WatermarkStrategy.for_monotonous_timestamps()
    with pytest.raises(ProgramError, match="expected a name"):
        plain.with_watermark_alignment("", Duration.of_millis(1))
    with pytest.raises(ProgramError, match="not negative"):
        plain.with_watermark_alignment("g", Duration.of_millis(-1))
    with pytest.raises(ProgramError, match="interval above 0"):
        plain.with_watermark_alignment("g", Duration.of_millis(1), Duration.of_millis(0))


def test_parallelism_is_that_of_both(in_process: InProcessEngine, tmp_path: Path) -> None:
    env = environment(**settings(tmp_path)).set_parallelism(3)
    numbers = env.from_source(NumberSequenceSource(0, 9), OWN_TIME, "numbers").set_parallelism(2)
    numbers.map(lambda number: (number, number), PAIR).sink_to(FileSink.json(str(tmp_path / "out")))
    env.execute("two subtasks")
    assert published(tmp_path / "out") == [(number, number) for number in range(10)]
    env = environment(**settings(tmp_path))
    source = env.from_source(NumberSequenceSource(0, 9), WatermarkStrategy.no_watermarks(), "numbers")
    source.set_parallelism(3).assign_timestamps_and_watermarks(OWN_TIME).set_parallelism(2).print()
    with pytest.raises(ProgramError, match="3 subtasks, and its watermarks with 2"):
        env.execute("two and three")
