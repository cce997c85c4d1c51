"""Kafka through Spark's own connector: the program of the other tests, over ``spark.readStream``."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from tests.integration.kafka.kafka_job import expected
from tests.integration.kafka.places import PARTITIONS, Job
from tests.kit.faults import FaultPlan
from tests.kit.kafka import KafkaBroker, spark_connector
from tests.kit.unavailable import Unavailable

pytestmark = pytest.mark.slow

ROWS, KEYS = 20_000, 101
SETTINGS = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "holdfast.stream.available-now": "true",
    "execution.checkpointing.interval": "10 ms",
    "execution.checkpointing.num-retained": "30",
    "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
}


@pytest.fixture
def connector() -> str:
    try:
        return str(spark_connector())
    except Unavailable as reason:
        pytest.skip(f"no test with Spark's Kafka connector: {reason}")


def test_kills_and_an_older_checkpoint_rewind_the_connector(
    kafka: KafkaBroker, topic: Callable[..., str], connector: str, tmp_path: Path
) -> None:
    job = Job(kafka, topic, tmp_path, ROWS, KEYS)
    given = {"connector": connector, "batch_rows": 2_000}
    faults = FaultPlan(tmp_path / "faults")
    faults.add("task.outputs-sent", "kill", hit=8)
    faults.add("sink.after-commit", "kill", hit=4)
    with job.driver(faults, settings=SETTINGS, **given) as driver:
        assert driver.wait(150) == -9, driver.output[-4000:]
    checkpoints = (tmp_path / "checkpoints" / "kafka").glob("chk-*/_metadata")
    # The first one may be that of an epoch without rows.
    older = sorted(checkpoints, key=lambda path: int(path.parent.name[4:]))[-2].parent
    assert not faults.not_reached()
    again = {"holdfast.job-id": "again", "execution.state-recovery.path": str(older)}
    # Its transactions are those of the first output, which has their rows, and none of another sink.
    again["execution.state-recovery.ignore-unclaimed-state"] = "true"
    output = topic(PARTITIONS)
    with job.driver(settings={**SETTINGS, **again}, output=output, sink_uid="other", **given) as driver:
        assert driver.wait(150) == 0, driver.output[-4000:]
    assert 0 < len(kafka.committed(output, PARTITIONS)) < ROWS
    check_tail(kafka.committed(output, PARTITIONS))
    with job.driver(settings=SETTINGS, **given) as driver:
        assert driver.wait(150) == 0, driver.output[-4000:]
    job.check()


def check_tail(rows: list[bytes]) -> None:
    """Each key went on counting where the checkpoint left it, with the rows behind the checkpoint and no others."""
    places = defaultdict(list)
    for key, place in pairs(rows):
        places[key].append(place)
    last = Counter(key for key, _ in pairs(expected(ROWS, KEYS)))
    for key, seen in places.items():
        assert sorted(seen) == list(range(min(seen), last[key] + 1)), key


def pairs(rows: Iterable[bytes]) -> Iterator[tuple[int, int]]:
    for row in rows:
        key, place = row.split(b",")
        yield int(key), int(place)
