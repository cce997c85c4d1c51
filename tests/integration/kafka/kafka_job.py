"""Kafka -> keyed state -> Kafka, whose output tells whether any row was lost or repeated. Runs as a driver program.

Every row is a number; its key is the number modulo the keys. The job gives each row its place among those of its key:
``<key>,<place>``. The source is Holdfast's or, given the jars of Spark's connector ("connector"), a stream of Spark's.
Without Spark ("in_process") the real job master, coordinator and tasks run in the driver, and some attempts fail at
moments that are drawn from a seed.
"""

from __future__ import annotations

import json
import logging
import random
import sys
from collections import Counter
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

from holdfast.common import Configuration, SimpleStringSchema, Types, WatermarkStrategy
from holdfast.datastream import DataStream, StreamExecutionEnvironment
from holdfast.datastream.connectors.kafka import (
    DeliveryGuarantee,
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from holdfast.errors import JobEndedError, StoreVersionError
from holdfast.runtime.epoch import EpochSpec
from holdfast.spark.session import obtain_session
from holdfast.testing.in_process import InProcessEngine
from tests.kit.rescaled import parallelism_of_this_start

#: A broker that was killed is found again quickly.
CLIENT = {"reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 500, "log_level": 0}


def place_of(row: str, seen: int | None) -> tuple[str, int]:
    place = (seen or 0) + 1
    return f"{row},{place}", place


def own_source(env: StreamExecutionEnvironment, given: dict[str, Any]) -> DataStream:
    source = KafkaSource.builder().set_bootstrap_servers(given["servers"]).set_topics(given["input"])
    source.set_group_id(f"group-of-{given['input']}").set_bounded(KafkaOffsetsInitializer.latest())
    source.set_value_only_deserializer(SimpleStringSchema()).set_properties(CLIENT)
    return env.from_source(source.build(), WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")


def spark_stream(env: StreamExecutionEnvironment, given: dict[str, Any]) -> DataStream:
    jars = ",".join(str(path) for path in Path(given["connector"]).glob("*.jar"))
    spark = obtain_session({**spark_settings(given), "spark.jars": jars})
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", given["servers"])
    reader = reader.option("subscribe", given["input"]).option("startingOffsets", "earliest")
    reader = reader.option("maxOffsetsPerTrigger", given["batch_rows"])
    frame = reader.load().selectExpr("CAST(value AS STRING) AS value")
    return env.from_data_frame(frame, "numbers").uid("numbers").map(lambda row: row.value, Types.STRING())


def spark_settings(given: dict[str, Any]) -> dict[str, str]:
    return {name: value for name, value in given["settings"].items() if name.startswith("spark.")}


def run(directory: Path, given: dict[str, Any]) -> Any:
    configuration = Configuration.from_dict(
        {
            "holdfast.job-id": "kafka",
            "execution.checkpointing.dir": str(directory / "checkpoints"),
            "execution.checkpointing.interval": "10 ms",
            "holdfast.state.local-dir": str(directory / "local"),
            "holdfast.epoch.idle-wait": "10 ms",
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": "1000",
            "restart-strategy.fixed-delay.delay": "50 ms",
            "parallelism.default": parallelism_of_this_start(),
            **given["settings"],
        }
    )
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    rows = spark_stream(env, given) if "connector" in given else own_source(env, given)
    records = KafkaRecordSerializationSchema.builder().set_topic(given["output"])
    records.set_value_serialization_schema(SimpleStringSchema())
    sink = KafkaSink.builder().set_bootstrap_servers(given["servers"]).set_record_serializer(records.build())
    sink.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE).set_transactional_id_prefix(given["output"])
    for name, value in CLIENT.items():
        sink.set_property(name, value)
    keys = given["keys"]
    keyed = rows.map(lambda row: str(int(row) % keys), Types.STRING()).key_by(lambda key: key, Types.STRING())
    places = keyed.map_with_state(place_of, state_type=int, output_type=Types.STRING()).uid("places")
    places.sink_to(sink.build()).uid(given.get("sink_uid", "sink"))
    return env.execute("kafka").get_history()


def expected(rows: int, keys: int) -> Counter[bytes]:
    counts = Counter(number % keys for number in range(rows))
    return Counter(f"{key},{place + 1}".encode() for key, count in counts.items() for place in range(count))


def failing_engine(seed: int, faults: int, epochs: int) -> InProcessEngine:
    """In the place of Spark; some of its epochs fail, before they ran or after."""
    moments = random.Random(seed)
    failing = {moments.randrange(2, epochs): moments.choice(["before", "after"]) for _ in range(faults)}
    ran = 0

    def before(spec: EpochSpec) -> None:
        nonlocal ran
        ran += 1
        print(f"EPOCH {spec.attempt} {spec.epoch}", flush=True)
        fail("before")

    def fail(when: str) -> None:
        if failing.get(ran) == when:
            del failing[ran]
            print("FAULT attempt", flush=True)
            raise StoreVersionError("state is not on this host")

    return InProcessEngine(before_epoch=before, after_epoch=lambda spec: fail("after"))


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    logging.getLogger("py4j").setLevel(logging.ERROR)
    where, arguments = Path(sys.argv[1]), json.loads(sys.argv[2])
    given = arguments.get("in_process")
    restarts = 0
    # A driver that was killed may have got to the end of the job.
    with failing_engine(**given).installed() if given else nullcontext(), suppress(JobEndedError):
        restarts = run(where, arguments).restarts
    print(f"FINISHED restarts={restarts}", flush=True)
