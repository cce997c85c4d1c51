"""Who acts for a job: one driver at a time, and every attempt of it under a number of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from holdfast.checkpoint.job_address import AddressNotice, JobAddress
from holdfast.checkpoint.job_directory import JobDirectory
from holdfast.checkpoint.job_end import JobEnd
from holdfast.checkpoint.lease import Pause


class Leadership(ABC):
    """The right of one driver to act for one job, and the number of its attempt, which fences off those before it.

    Nothing that another driver could see is done without it: ids of checkpoints are drawn, checkpoints completed and
    removed, and sinks committed only by the leader. ``publish_address`` and ``leader_address`` may be called from any
    thread, the others from the one that drives the job.
    """

    #: Whether ``acquire`` waits for another driver, and whether leadership can be lost and won again.
    waits: ClassVar[bool] = False

    @abstractmethod
    def acquire(self, pause: Pause) -> JobEnd | None:
        """Lead the job from now on. How it ended, when another driver has brought it to its end meanwhile.

        While another driver leads, this waits through ``pause``, or raises JobLockedError where nobody waits.
        """

    @abstractmethod
    def release(self) -> None:
        """Let another driver lead. Nothing happens when this one does not."""

    @abstractmethod
    def next_attempt(self) -> int:
        """A number greater than that of every attempt before, of this driver or of another; durable on return."""

    def begin_from(self, checkpoint_id: int) -> None:
        """The attempt begins from this checkpoint of the job, 0 for none: where nothing else keeps late checkpoints of
        earlier attempts away, it is recorded. Called ahead of everything that the attempt does to transactions.
        """

    @property
    def in_doubt(self) -> bool:
        """Whether it cannot be known for now that this driver leads. Costs nothing; LeadershipLostError once it is
        known that it does not.
        """
        return False

    @abstractmethod
    def check(self) -> None:
        """Make sure that this driver leads at this moment, waiting out a doubt; LeadershipLostError when not."""

    def announce_end(self, end: JobEnd) -> None:
        """Tell drivers that wait that there is nothing left for them to do."""

    def stood_by(self, end: JobEnd) -> bool:
        """Whether the job came to this end while this driver waited to lead it, or led it."""
        return False

    @abstractmethod
    def publish_address(self, address: JobAddress, token: str | None = None) -> None:
        """Where the server of this driver listens, and what requests about the job must bring: seen by others while
        this driver leads, now or later.
        """

    @abstractmethod
    def leader_address(self) -> str | None:
        """The URL that the leader published; None when there is none. Known to any driver."""


class SoleLeadership(Leadership):
    """Leadership of a job that no other driver can find: its checkpoints are in the memory of this one."""

    def __init__(self) -> None:
        self._attempts = 0
        self._address: str | None = None

    def acquire(self, pause: Pause) -> JobEnd | None:
        return None

    def release(self) -> None:
        """Nobody else could lead."""

    def next_attempt(self) -> int:
        self._attempts += 1
        return self._attempts

    def check(self) -> None:
        """It cannot be lost."""

    def publish_address(self, address: JobAddress, token: str | None = None) -> None:
        self._address = address.url

    def leader_address(self) -> str | None:
        return self._address


class DirectoryLeadership(Leadership):
    """Leadership by the lock of the job's directory, whose lease is watched until it runs out. The address of a driver
    that was killed stays until the next one leads.
    """

    def __init__(self, directory: JobDirectory) -> None:
        self._directory = directory
        self._notice = AddressNotice(directory.address)
        self._leads = False

    def acquire(self, pause: Pause) -> JobEnd | None:
        self._directory.lock(pause)
        self._leads = True
        self._notice.show()
        return None

    def release(self) -> None:
        if self._leads:
            self._leads = False
            self._notice.hide()
            self._directory.unlock()

    def next_attempt(self) -> int:
        self._directory.check_locked()
        number = self._directory.next_attempt()
        self._notice.begin_attempt(number)
        return number

    def begin_from(self, checkpoint_id: int) -> None:
        self._directory.begin_from(checkpoint_id)

    @property
    def in_doubt(self) -> bool:
        return self._directory.in_doubt

    def check(self) -> None:
        self._directory.check_locked()

    def publish_address(self, address: JobAddress, token: str | None = None) -> None:
        self._notice.publish(address, token)

    def leader_address(self) -> str | None:
        address = self._directory.address.read()
        return None if address is None else address.url
