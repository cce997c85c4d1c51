"""Who leads a job, decided by ZooKeeper."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable
from operator import methodcaller
from typing import Any, NamedTuple

import msgspec
from kazoo.client import TransactionRequest
from kazoo.exceptions import (
    KazooException,
    NodeExistsError,
    NoNodeError,
    RolledBackError,
    RuntimeInconsistency,
)

from holdfast.checkpoint.driver_record import DriverRecord
from holdfast.checkpoint.job_address import AddressNotice, JobAddress
from holdfast.checkpoint.job_directory import JobDirectory
from holdfast.checkpoint.job_end import JobEnd
from holdfast.checkpoint.leadership import Leadership
from holdfast.checkpoint.lease import Pause
from holdfast.checkpoint.zookeeper.address import leader_address
from holdfast.checkpoint.zookeeper.client import REFUSED, refusal
from holdfast.checkpoint.zookeeper.nodes import JobNodes
from holdfast.checkpoint.zookeeper.session import ZooKeeperSession
from holdfast.errors import LeadershipLostError, StorageError
from holdfast.types.settings import ZooKeeperSettings

_log = logging.getLogger(__name__)
_TURN_SECONDS = 0.25
#: Answers to the parts of a transaction that only say that another part failed.
_COLLATERAL = (RolledBackError, RuntimeInconsistency)


class LeaderRecord(msgspec.Struct, frozen=True):
    """The content of the leader's node: the number of the running attempt and the driver that runs it."""

    attempt: int
    driver: DriverRecord


class Term(NamedTuple):
    """The time from an election to the next. ``version`` is that of the leader's node, which every later leader raises.
    """

    session: ZooKeeperSession
    ballot: str
    version: int
    attempt: int


class ZooKeeperLeadership(Leadership):
    """The oldest ballot leads. A ballot is an ephemeral node, so that it goes with the session of its driver.

    The fence does not depend on time: each change is one transaction with a check of the version that the leader's node
    got when this attempt began, and of the ballot. A driver that was stopped while another one was elected fails that
    check, whatever it believes when it goes on.
    """

    waits = True

    def __init__(self, settings: ZooKeeperSettings, directory: JobDirectory) -> None:
        self.nodes = JobNodes.of(settings, directory.job_id)
        self._settings = settings
        self._job_id = directory.job_id
        self._directory = directory
        self._driver = DriverRecord.of_this_process()
        self._address: str | None = None
        self._notice = AddressNotice(directory.address)
        self._term: Term | None = None
        #: A change carries the version of its moment: nobody may raise it meanwhile.
        self._changing = threading.Lock()
        #: The announcement of an end of the job that was the last one when this driver began to wait, and the end that
        #: was recorded then.
        self._known_outcome: int | None = None
        self._known_end: JobEnd | None = None

    # -- elections

    def acquire(self, pause: Pause) -> JobEnd | None:
        if self._term is not None:
            return None
        while True:
            session = ZooKeeperSession(self._settings)
            try:
                session.open(pause)
                return self._elect(session, pause)
            except REFUSED as error:
                session.close()
                self._term = None
                raise refusal(self._settings, error) from error
            except (KazooException, LeadershipLostError) as error:
                session.close()
                self._term = None
                _log.warning("Job %s is not led by this driver: %s. Trying again.", self._job_id, error)
                pause(self._settings.retry_wait_ms / 1000)
            except BaseException:
                session.close()
                self._term = None
                raise

    def _elect(self, session: ZooKeeperSession, pause: Pause) -> JobEnd | None:
        for node in (self.nodes.ballots, self.nodes.leader, self.nodes.last_id):
            session.ask(methodcaller("ensure_path_async", node))
        if self._known_outcome is None:
            self._known_end = self._read_end(session)
            # Last: if the session is lost in between, both are read again.
            self._known_outcome = self._read_outcome(session)[0]
        ballot = self._cast(session)
        waiting = False
        while (before := self._ballots_before(session, ballot)) > 0:
            if not waiting:
                waiting = True
                _log.info("Waiting for leadership of job %s: %d drivers are before this one", self._job_id, before)
            pause(_TURN_SECONDS)
        content, status = session.ask(lambda client: client.get_async(self.nodes.leader))
        attempt = msgspec.json.decode(content, type=LeaderRecord).attempt if content else 0
        self._term = Term(session, ballot, status.version, attempt)
        self._begin(attempt)
        changed, end = self._read_outcome(session)
        if end is not None and changed != self._known_outcome:
            return end
        self._directory.leave_to(f"ZooKeeper {self.nodes.root}", pause)
        self._show_address()
        self._notice.show()
        _log.info("This driver leads job %s", self._job_id)
        return None

    def _cast(self, session: ZooKeeperSession) -> str:
        """One ballot of this session. A request that was sent twice may have cast two: the older one counts."""
        # Ballots of an earlier session may still be there, and will go: the name must not be theirs.
        name = secrets.token_hex(8)
        path = f"{self.nodes.ballots}/{name}-"
        session.ask(lambda client: client.create_async(path, self._driver.encode(), ephemeral=True, sequence=True))
        own = [ballot for ballot in self._all_ballots(session) if ballot.startswith(f"{name}-")]
        if not own:
            raise LeadershipLostError("the ballot of this driver is gone")
        for other in own[1:]:
            session.ask(methodcaller("delete_async", f"{self.nodes.ballots}/{other}"))
        return own[0]

    def _all_ballots(self, session: ZooKeeperSession) -> list[str]:
        """In the order in which they were cast."""
        found: list[str] = session.ask(lambda client: client.get_children_async(self.nodes.ballots))
        return sorted(found, key=lambda ballot: int(ballot.rpartition("-")[2]))

    def _ballots_before(self, session: ZooKeeperSession, ballot: str) -> int:
        ballots = self._all_ballots(session)
        if ballot not in ballots:
            raise LeadershipLostError("the ballot of this driver is gone")
        return ballots.index(ballot)

    def release(self) -> None:
        term, self._term = self._term, None
        self._notice.hide()
        if term is not None:
            term.session.close()

    # -- what only the leader does

    @property
    def in_doubt(self) -> bool:
        return self._held().session.in_doubt

    def check(self) -> None:
        self.change(lambda transaction: None)

    def next_attempt(self) -> int:
        term = self._held()
        number = max(term.attempt, self._directory.last_attempt()) + 1
        self._begin(number)
        # Every number in between too: an upload looks for the one that follows its own.
        for earlier in range(self._directory.last_attempt() + 1, number + 1):
            self._directory.record_attempt(earlier)
        self._notice.begin_attempt(number)
        return number

    def _begin(self, number: int) -> None:
        """Raise the version of the leader's node: whoever led before, and earlier attempts of this driver, are fenced
        off from here on.
        """
        driver = msgspec.structs.replace(self._driver, since=str(time.time_ns()))
        content = msgspec.json.encode(LeaderRecord(number, driver))
        with self._changing:
            term = self._held()

            def request(client: Any) -> Any:
                transaction = client.transaction()
                transaction.check(f"{self.nodes.ballots}/{term.ballot}", -1)
                transaction.set_data(self.nodes.leader, content, term.version)
                return transaction.commit_async()

            answers = term.session.ask(request)
            status = answers[1]
            if _failure_of(answers) is not None:
                # Sent twice, it fails for the second time because of the first.
                found, status = term.session.ask(lambda client: client.get_async(self.nodes.leader))
                if found != content:
                    raise self._deposed(term)
            self._term = term._replace(version=status.version, attempt=number)

    def change(self, build: Callable[[TransactionRequest], None], done: type[KazooException] | None = None) -> None:
        """Change nodes in one transaction, if this driver leads. ``build`` adds the changes.

        It may be sent twice: ``done`` is the error that says that the changes were made before.
        """
        with self._changing:
            term = self._held()

            def request(client: Any) -> Any:
                transaction = client.transaction()
                transaction.check(self.nodes.leader, term.version)
                transaction.check(f"{self.nodes.ballots}/{term.ballot}", -1)
                build(transaction)
                return transaction.commit_async()

            answers = term.session.ask(request)
        failure = _failure_of(answers)
        if failure is None:
            return
        if any(answers[place] is failure for place in (0, 1)):
            raise self._deposed(term)
        if done is None or not isinstance(failure, done):
            raise StorageError(f"ZooKeeper refused a change below {self.nodes.root}: {failure!r}") from failure

    def read(self, node: str) -> bytes | None:
        """None when there is no such node."""
        try:
            content: bytes = self._held().session.ask(lambda client: client.get_async(node))[0]
            return content
        except NoNodeError:
            return None

    def children(self, node: str) -> list[str] | None:
        """None when there is no such node."""
        try:
            found: list[str] = self._held().session.ask(lambda client: client.get_children_async(node))
            return found
        except NoNodeError:
            return None

    def put(self, node: str, content: bytes) -> None:
        """Create a node, or change what it holds."""
        if self.read(node) is None:
            self.change(lambda transaction: transaction.create(node, content), NodeExistsError)
        else:
            self.change(lambda transaction: transaction.set_data(node, content))

    def announce_end(self, end: JobEnd) -> None:
        self.put(self.nodes.outcome, end.encode())
        self._known_outcome = self._read_outcome(self._held().session)[0]

    def _read_outcome(self, session: ZooKeeperSession) -> tuple[int, JobEnd | None]:
        """The number of the change that announced an end of the job, and the end; 0 when there was none."""
        try:
            content, status = session.ask(lambda client: client.get_async(self.nodes.outcome))
        except NoNodeError:
            return 0, None
        return status.mzxid, JobEnd.decode(content)

    def stood_by(self, end: JobEnd) -> bool:
        # An end that only a file tells of was recorded before the job was kept here.
        return end.is_same(self._read_end(self._held().session)) and not end.is_same(self._known_end)

    def _read_end(self, session: ZooKeeperSession) -> JobEnd | None:
        try:
            return JobEnd.decode(session.ask(lambda client: client.get_async(self.nodes.ended))[0])
        except NoNodeError:
            return None

    # -- where the leader is

    def publish_address(self, address: JobAddress, token: str | None = None) -> None:
        self._address = address.url
        self._notice.publish(address, token)
        try:
            self._show_address()
        except LeadershipLostError:
            _log.info("The address of this driver is shown when it leads again")

    def _show_address(self) -> None:
        term, address = self._term, self._address
        if term is None or address is None:
            return
        if self.read(self.nodes.address) is not None:
            self.change(lambda transaction: transaction.delete(self.nodes.address), NoNodeError)
        content = address.encode()
        self.change(
            lambda transaction: transaction.create(self.nodes.address, content, ephemeral=True), NodeExistsError
        )

    def leader_address(self) -> str | None:
        return leader_address(self._settings, self._job_id)

    # -- inside

    def _held(self) -> Term:
        if self._term is None:
            raise LeadershipLostError(f"this driver does not lead job {self._job_id}")
        return self._term

    def _deposed(self, term: Term) -> LeadershipLostError:
        term.session.declare_lost("another driver was elected")
        return LeadershipLostError(
            f"this driver does not lead job {self._job_id} any more: its session with ZooKeeper has ended, or another "
            "driver was elected"
        )


def _failure_of(answers: list[Any]) -> KazooException | None:
    """What made a transaction fail; None when it did not."""
    errors = [answer for answer in answers if isinstance(answer, Exception)]
    return next((error for error in errors if not isinstance(error, _COLLATERAL)), errors[0] if errors else None)
