"""Which connections the job server keeps when there are too many. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

#: Where ``scope["state"]`` of a request has its connection.
CONNECTION = "holdfast.connection"


@dataclass(eq=False)
class Connection:
    """What is known of whoever connected."""

    address: str
    #: Whether a request came over it that was allowed: with the token, where one is needed.
    trusted: bool = False


@dataclass(frozen=True)
class ConnectionLimits:
    """How many connections there may be. ``few`` is for a process that is short of file descriptors."""

    total: int
    per_address: int
    few: int = 8


class Admission:
    """Connections in the order in which they came. For one thread."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._kept: dict[Connection, None] = {}

    def admit(self, newcomer: Connection, short: bool) -> list[Connection]:
        """Connections that have to go, now that ``newcomer`` is there; ``short`` of file descriptors.

        The oldest that has shown no token goes first: a request with one arrives together with its connection, so that
        no number of silent connections keeps it out. Where all others have shown one, the newcomer goes.
        """
        self._kept[newcomer] = None
        gone = []
        while crowd := self._crowd(newcomer, short):
            victim = next(connection for connection in self._kept if connection in crowd)
            self.forget(victim)
            gone.append(victim)
        return gone

    def forget(self, connection: Connection) -> None:
        """It is closed, or will be."""
        self._kept.pop(connection, None)

    def _crowd(self, newcomer: Connection, short: bool) -> set[Connection]:
        """Connections of which one has to go: none of them has shown a token. Empty where all may stay."""
        if newcomer not in self._kept:
            return set()
        of_address = sum(connection.address == newcomer.address for connection in self._kept)
        if of_address > self._limits.per_address:
            return self._untrusted(newcomer.address)
        if len(self._kept) > (self._limits.few if short else self._limits.total):
            busiest = Counter(connection.address for connection in self._kept if not connection.trusted)
            return self._untrusted(max(busiest, key=lambda address: busiest[address]))
        return set()

    def _untrusted(self, address: str) -> set[Connection]:
        return {each for each in self._kept if each.address == address and not each.trusted}
