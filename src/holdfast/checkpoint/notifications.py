"""Notifications of functions about checkpoints."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class NotificationKind(Enum):
    COMPLETE = "complete"
    ABORTED = "aborted"


class Notification(NamedTuple):
    """What the functions of the running attempt are told with the next epoch."""

    kind: NotificationKind
    checkpoint_id: int
