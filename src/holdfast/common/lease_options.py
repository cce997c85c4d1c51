"""Options of the lease by which a driver holds its job."""

from __future__ import annotations

from typing import Any

from holdfast.common.option_types import DURATION, Option

LEASE_INTERVAL: Option[int] = Option(
    "holdfast.lease.heartbeat-interval",
    DURATION,
    5_000,
    "How often a driver renews its lease on the job, by writing a small file in the checkpoint directory.",
    least=100,
)
LEASE_TIMEOUT: Option[int] = Option(
    "holdfast.lease.timeout",
    DURATION,
    15_000,
    "A driver that has not renewed its lease for so long loses the job to one that is started for it, if nothing else "
    "tells whether it lives. More than twice the interval. Of two drivers with different values the longer counts.",
)

LEASE: tuple[Option[Any], ...] = (LEASE_INTERVAL, LEASE_TIMEOUT)
