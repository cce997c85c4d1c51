"""Whether topics may have more than was read, as the driver sees it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import cached_property
from typing import Any

from holdfast.connectors.kafka.client import admin_client, administration, connection_settings, offsets_from
from holdfast.connectors.kafka.topics import Subscription, partitions_of
from holdfast.runtime.source import SourceWatch

#: How long brokers may take to answer. Nothing else of the job waits longer for them.
_SECONDS = 5.0


class TopicWatch(SourceWatch):
    """Compares the ends of partitions, with what transactions have not committed yet: their commit moves an end too.

    Partitions that appear later are found by readers, in an epoch of their own time.
    """

    #: The consumers of tasks fetch by themselves. What the brokers have had for so long is there when they are asked.
    settles_ms = 1_000

    def __init__(self, subscription: Subscription, settings: Mapping[str, Any]) -> None:
        self._subscription = subscription
        self._settings = settings
        self._latest = administration().OffsetSpec.latest()

    def look(self) -> Hashable:
        offsets = offsets_from(self._admin, self._partitions, self._latest, _SECONDS)
        return frozenset(offsets.items())

    @cached_property
    def _admin(self) -> Any:
        return admin_client(connection_settings(self._settings))

    @cached_property
    def _partitions(self) -> list[tuple[str, int]]:
        found = partitions_of(self._subscription, self._settings, "the driver")
        return [(partition.topic, partition.partition) for partition in found]
