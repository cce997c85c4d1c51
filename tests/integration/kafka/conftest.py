"""One broker for all tests with Kafka."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import pytest

from tests.kit.kafka import KafkaBroker, broker
from tests.kit.unavailable import Unavailable


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaBroker]:
    try:
        with broker() as running:
            yield running
    except Unavailable as reason:
        pytest.skip(f"no test with a Kafka broker: {reason}")


@pytest.fixture
def topic(kafka: KafkaBroker) -> Callable[..., str]:
    """Makes topics that no other test has."""

    def make(partitions: int = 1, **config: str) -> str:
        return kafka.create_topic(f"topic-{uuid.uuid4().hex[:8]}", partitions, **config)

    return make
