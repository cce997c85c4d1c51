"""The client library, and what its errors mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from holdfast.errors import MissingExtraError, SourceUnreachableError

#: How long a question to the brokers may take.
REQUEST_SECONDS = 30.0
#: How long brokers may be silent before a sink gives up. The attempt fails then, and the next one goes on.
PATIENCE_SECONDS = 120.0


def library() -> Any:
    """confluent_kafka, imported where it is used."""
    try:
        import confluent_kafka
    except ImportError as cause:
        raise MissingExtraError("confluent-kafka", "kafka", "Kafka") from cause
    return confluent_kafka


def administration() -> Any:
    """confluent_kafka.admin."""
    library()
    from confluent_kafka import admin

    return admin


def admin_client(settings: Mapping[str, Any]) -> Any:
    return administration().AdminClient(dict(settings))


def list_offsets(
    settings: Mapping[str, Any], partitions: Iterable[tuple[str, int]], spec: Any
) -> dict[tuple[str, int], int]:
    """What an ``OffsetSpec`` is for each partition, counting what transactions have not committed yet."""
    # Held until the answers are there: they come through it.
    admin = admin_client(connection_settings(settings))
    return offsets_from(admin, partitions, spec, REQUEST_SECONDS)


def offsets_from(
    admin: Any, partitions: Iterable[tuple[str, int]], spec: Any, seconds: float
) -> dict[tuple[str, int], int]:
    """As ``list_offsets``, through a client that is there already and stays."""
    kafka = library()
    asked = {kafka.TopicPartition(topic, number): spec for topic, number in partitions}
    answers = admin.list_offsets(
        asked, isolation_level=kafka.IsolationLevel.READ_UNCOMMITTED, request_timeout=seconds
    )
    return {(at.topic, at.partition): answer.result(seconds).offset for at, answer in answers.items()}


def connection_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What a client of any kind takes of them: where the brokers are and how to speak to them."""
    common = ("bootstrap.servers", "security.", "sasl.", "ssl.", "client.", "socket.", "broker.", "debug", "log_level")
    return {name: value for name, value in settings.items() if name.startswith(common)}


def unreachable(task: str, settings: Mapping[str, Any], doing: str, cause: Exception) -> SourceUnreachableError:
    return SourceUnreachableError(
        f"{task} could not {doing} at {settings['bootstrap.servers']}: {cause}. "
        "Check that the brokers can be reached from the executors and that this user may do it; nothing was skipped."
    )
