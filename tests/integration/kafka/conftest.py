"""One broker for all tests with Kafka."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import pytest

from tests.kit.kafka import KafkaBroker, broker


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaBroker]:
    with broker() as running:
        yield running


@pytest.fixture
def topic(kafka: KafkaBroker) -> Callable[..., str]:
    """Makes topics that no other test has."""

    def make(partitions: int = 1, **config: str) -> str:
        return kafka.create_topic(f"topic-{uuid.uuid4().hex[:8]}", partitions, **config)

    return make
