"""What a job talks to and a fault can take away."""

from __future__ import annotations

from abc import ABC, abstractmethod


class Service(ABC):
    """A broker, a database: something outside the job that goes away and comes back with its data and its address.

    The methods are called by the harness, one at a time. A fault calls ``kill`` or ``stop`` and then ``start``.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """As it is counted in results: ``broker``."""

    @abstractmethod
    def start(self) -> None:
        """Start it again and wait until it answers."""

    @abstractmethod
    def stop(self) -> None:
        """End it in order, as an operator would."""

    @abstractmethod
    def kill(self) -> None:
        """End it at once, as when its host goes down. What it had promised to keep, it keeps."""
