"""Rows that go to Kafka as they come, without transactions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.connectors.kafka.client import library
from holdfast.connectors.kafka.records import Records, wait_for_brokers
from holdfast.errors import TransactionError

#: Producers that a worker process keeps open, by the identity of their sink.
_open: dict[str, DirectProducer] = {}


def producer_of(sink_id: str, settings: Mapping[str, Any]) -> DirectProducer:
    if sink_id not in _open:
        _open[sink_id] = DirectProducer(settings)
    return _open[sink_id]


def release_producer(sink_id: str) -> None:
    """The sink is closed: what it has sent is handed over, and its client ends. Another subtask that has rows left in
    this process opens one again.
    """
    producer = _open.pop(sink_id, None)
    if producer is not None:
        producer.flush()


class DirectProducer:
    """Hands records to the client's buffer; ``flush`` waits until the brokers have them."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._errors: list[Any] = []
        reports = {"delivery.report.only.error": True, "on_delivery": self._on_delivery}
        self._producer = library().Producer({**settings, **reports})
        self._servers = settings["bootstrap.servers"]

    def send(self, records: Records) -> None:
        records.produce(self._producer)
        self._check()

    def flush(self) -> None:
        wait_for_brokers(self._producer, 0)
        self._check()

    def _on_delivery(self, error: Any, message: Any) -> None:
        if error is not None:
            self._errors.append((message.topic(), error))

    def _check(self) -> None:
        if self._errors:
            (topic, error), count = self._errors[0], len(self._errors)
            self._errors.clear()
            raise TransactionError(
                f"{count} records were not taken by {self._servers}; the first, to {topic!r}: {error.str()}. The epoch "
                "is run again: check the brokers, and that the topic exists."
            )
