"""One contract of leadership, and of the numbers of checkpoints, run on each kind."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.checkpoint.completed import CompletedCheckpoint
from holdfast.checkpoint.job_directory import JobDirectory
from holdfast.checkpoint.job_end import JobEnd
from holdfast.checkpoint.job_home import JobHome
from holdfast.errors import ConfigurationError, JobLockedError, LeadershipLostError, MissingExtraError
from holdfast.types.settings import CheckpointSettings, ZooKeeperSettings
from tests.checkpoint.homes import NewDriver, StillWaiting, address_at, do_not_wait, new_driver_of
from tests.checkpoint.samples import JOB_ID, metadata
from tests.kit.zookeeper import ZooKeeperServer

ADDRESS = "http://127.0.0.1:8081"


@pytest.fixture(params=["memory", "directory", "zookeeper"])
def new_driver(request: pytest.FixtureRequest, tmp_path: Path) -> NewDriver:
    return new_driver_of(request.param, request, tmp_path)


@pytest.fixture(params=["directory", "zookeeper"])
def new_rival(request: pytest.FixtureRequest, tmp_path: Path) -> NewDriver:
    """Drivers that know of each other."""
    return new_driver_of(request.param, request, tmp_path)


@pytest.fixture
def new_standby(request: pytest.FixtureRequest, tmp_path: Path) -> NewDriver:
    """Drivers that wait for each other."""
    return new_driver_of("zookeeper", request, tmp_path)


def led(home: JobHome) -> JobHome:
    assert home.leadership.acquire(time.sleep) is None
    return home


class TestContract:
    def test_attempts_count_up(self, new_driver: NewDriver) -> None:
        leadership = led(new_driver()).leadership
        assert [leadership.next_attempt() for _ in range(3)] == [1, 2, 3]

    def test_the_leader_is_in_no_doubt(self, new_driver: NewDriver) -> None:
        leadership = led(new_driver()).leadership
        leadership.next_attempt()
        leadership.check()
        assert not leadership.in_doubt

    def test_it_is_acquired_and_released_once(self, new_driver: NewDriver) -> None:
        leadership = new_driver().leadership
        leadership.release()
        for _ in range(2):
            assert leadership.acquire(time.sleep) is None
        for _ in range(2):
            leadership.release()
        assert leadership.acquire(time.sleep) is None

    def test_the_address_of_the_leader(self, new_driver: NewDriver) -> None:
        leadership = led(new_driver()).leadership
        assert leadership.leader_address() is None
        for address in (ADDRESS, "http://127.0.0.1:9"):
            leadership.publish_address(address_at(address))
            assert leadership.leader_address() == address

    def test_numbers_count_up_from_one(self, new_driver: NewDriver) -> None:
        ids = led(new_driver()).services().ids
        assert [ids.next() for _ in range(3)] == [1, 2, 3]
        ids.pass_over(7)
        ids.pass_over(5)
        assert ids.next() == 8


class TestRivals:
    def test_one_leads_at_a_time(self, new_rival: NewDriver) -> None:
        first, second = led(new_rival()), new_rival()
        with pytest.raises((JobLockedError, StillWaiting)):
            second.leadership.acquire(do_not_wait)
        first.leadership.release()
        assert second.leadership.acquire(time.sleep) is None

    def test_attempts_and_numbers_go_on(self, new_rival: NewDriver) -> None:
        first = led(new_rival())
        assert [first.leadership.next_attempt() for _ in range(2)] == [1, 2]
        number = first.services().ids.next()
        first.storage.write_metadata(metadata(number))
        first.leadership.release()
        second = led(new_rival())
        assert second.leadership.next_attempt() == 3
        assert second.services().ids.next() == number + 1

    def test_the_address_that_others_see_is_the_leaders(self, new_rival: NewDriver) -> None:
        first, second = led(new_rival()), new_rival()
        second.leadership.publish_address(address_at("http://127.0.0.1:9"))
        assert second.leadership.leader_address() is None
        first.leadership.publish_address(address_at(ADDRESS))
        assert second.leadership.leader_address() == ADDRESS
        first.leadership.release()
        led(second)
        assert first.leadership.leader_address() == "http://127.0.0.1:9"


class TestDirectory:
    """Leadership of a job that is kept in its directory alone, whose driver is overtaken although it has the lock."""

    @pytest.mark.parametrize(
        "act",
        [
            lambda home, services: home.leadership.check(),
            lambda home, services: home.leadership.next_attempt(),
            lambda home, services: services.store.add(CompletedCheckpoint(metadata(2), home.storage.location(2))),
            lambda home, services: services.store.remove(1),
            lambda home, services: services.store.mark_commit_begun(1),
            lambda home, services: services.store.mark_committed(1),
        ],
        ids=["check", "attempt", "add", "remove", "begin", "committed"],
    )
    def test_behind_another_attempt_it_changes_nothing(
        self, request: pytest.FixtureRequest, tmp_path: Path, act: Callable[..., Any]
    ) -> None:
        home = led(new_driver_of("directory", request, tmp_path)())
        assert home.leadership.next_attempt() == 1
        home.storage.write_metadata(metadata(1))
        services = home.services()
        assert JobDirectory(str(tmp_path / "chk"), JOB_ID).record_attempt(2)
        with pytest.raises(LeadershipLostError, match=r"is in attempt 2, and this driver began attempt 1"):
            act(home, services)
        assert home.storage.completed_ids() == [1]  # type: ignore[attr-defined]  # files
        assert home.storage.commits_begun() == frozenset()


def deposed(new_standby: NewDriver) -> tuple[JobHome, JobHome]:
    """A driver that believes that it leads, since it has slept, and the one that was elected meanwhile."""
    old, new = led(new_standby()), new_standby()
    old.leadership.next_attempt()
    ballots = old.leadership.nodes.ballots  # type: ignore[attr-defined]  # of ZooKeeper
    session = old.leadership._term.session  # type: ignore[attr-defined]  # of ZooKeeper
    # As when ZooKeeper lets a session expire, without a word to the one that sleeps.
    for ballot in session.ask(lambda client: client.get_children_async(ballots)):
        session.ask(lambda client, ballot=ballot: client.delete_async(f"{ballots}/{ballot}"))
    led(new).leadership.next_attempt()
    return old, new


class TestFence:
    @pytest.mark.parametrize(
        "act",
        [
            lambda home, services: home.leadership.check(),
            lambda home, services: home.leadership.next_attempt(),
            lambda home, services: home.leadership.announce_end(JobEnd.now("FINISHED")),
            lambda home, services: services.ids.next(),
            lambda home, services: services.store.add(CompletedCheckpoint(metadata(2), home.storage.location(2))),
            lambda home, services: services.store.remove(1),
            lambda home, services: services.store.mark_commit_begun(1),
            lambda home, services: services.store.mark_committed(1),
            lambda home, services: services.store.recover(),
        ],
        ids=["check", "attempt", "end", "number", "add", "remove", "begin", "committed", "recover"],
    )
    def test_a_deposed_leader_changes_nothing(self, new_standby: NewDriver, act: Callable[..., Any]) -> None:
        first = led(new_standby())
        first.leadership.next_attempt()
        services = first.services()
        services.store.recover()
        services.store.add(CompletedCheckpoint(metadata(1), first.storage.write_metadata(metadata(1))))
        first.leadership.release()
        old, new = deposed(new_standby)
        stale = old.services()
        stale.store._checkpoints = services.store.all()
        stale.store._pointers = dict(services.store._pointers)  # type: ignore[attr-defined]  # of this store
        with pytest.raises(LeadershipLostError):
            act(old, stale)
        # It knows from now on.
        with pytest.raises(LeadershipLostError):
            _ = old.leadership.in_doubt
        current = new.services()
        assert current.store.recover() == []
        assert [kept.checkpoint_id for kept in current.store.all()] == [1]
        assert current.store.commits_begun() == frozenset()
        assert current.ids.next() == 2
        assert new.leadership.next_attempt() == 4

    def test_a_deposed_leader_takes_no_metadata_of_its_successor_away(self, new_standby: NewDriver) -> None:
        old, new = deposed(new_standby)
        number = new.services().ids.next()
        new.storage.write_metadata(metadata(number))
        with pytest.raises(LeadershipLostError):
            old.services().store.recover()
        assert new.storage.completed_ids() == [number]  # type: ignore[attr-defined]  # of the files

    def test_an_earlier_attempt_of_the_same_driver_is_no_other_leader(self, new_standby: NewDriver) -> None:
        home = led(new_standby())
        services = home.services()
        for attempt in (1, 2, 3):
            assert home.leadership.next_attempt() == attempt
            assert services.ids.next() == attempt

    def test_another_one_is_elected_while_an_attempt_begins(
        self, new_standby: NewDriver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        leadership: Any = led(new_standby()).leadership
        session, node = leadership._term.session, leadership.nodes.leader
        ask = session.ask

        def overtaken(request: Any) -> Any:
            monkeypatch.setattr(session, "ask", ask)
            answer = ask(request)
            ask(lambda client: client.set_async(node, b"another one"))
            return answer

        monkeypatch.setattr(session, "ask", overtaken)
        leadership.next_attempt()
        with pytest.raises(LeadershipLostError):
            leadership.check()

    def test_an_attempt_that_was_asked_for_twice_begins_once(
        self, new_standby: NewDriver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The connection breaks behind a request that was heard, and it is sent again."""
        home = led(new_standby())
        leadership: Any = home.leadership
        session = leadership._term.session
        ask = session.ask

        def twice(request: Any) -> Any:
            ask(request)
            return ask(request)

        store = home.services().store
        store.recover()
        with monkeypatch.context() as patch:
            patch.setattr(session, "ask", twice)
            assert [leadership.next_attempt() for _ in range(2)] == [1, 2]
            store.add(CompletedCheckpoint(metadata(1), home.storage.write_metadata(metadata(1))))
            store.mark_commit_begun(1)
            store.add(CompletedCheckpoint(metadata(2), home.storage.write_metadata(metadata(2))))
            assert home.services().ids.next() == 3
            leadership.announce_end(JobEnd.now("FINISHED"))
        store.recover()
        assert [kept.checkpoint_id for kept in store.all()] == [2]

    def test_the_address_may_be_published_while_attempts_begin(self, new_standby: NewDriver) -> None:
        leadership = led(new_standby()).leadership
        addresses = [address_at(f"{ADDRESS}/{number}") for number in range(20)]
        server = threading.Thread(target=lambda: [leadership.publish_address(address) for address in addresses])
        server.start()
        assert [leadership.next_attempt() for _ in range(20)] == list(range(1, 21))
        server.join()
        assert leadership.leader_address() == f"{ADDRESS}/19"


class TestStandby:
    def test_it_leads_when_the_leader_goes(self, new_standby: NewDriver) -> None:
        first, second = led(new_standby()), new_standby()
        won = threading.Event()

        def wait() -> None:
            led(second)
            won.set()

        thread = threading.Thread(target=wait)
        thread.start()
        assert not won.wait(0.6)
        first.leadership.release()
        assert won.wait(10)
        thread.join()

    def test_waiting_can_be_given_up(self, new_standby: NewDriver) -> None:
        led(new_standby())
        second, third = new_standby(), new_standby()
        for standby in (second, third):
            with pytest.raises(StillWaiting):
                standby.leadership.acquire(do_not_wait)

    def test_it_learns_that_the_job_has_ended(self, new_standby: NewDriver) -> None:
        first, second = led(new_standby()), new_standby()
        with pytest.raises(StillWaiting):
            second.leadership.acquire(_patience(2))
        first.leadership.announce_end(JobEnd.now("FINISHED"))
        first.leadership.release()
        end = second.leadership.acquire(time.sleep)
        assert end is not None and end.status == "FINISHED"
        second.leadership.release()
        # A driver that begins now has not waited for that job.
        led(new_standby())

    def test_it_knows_the_end_of_a_job_that_it_stood_by(self, new_standby: NewDriver) -> None:
        first, second = led(new_standby()), new_standby()
        with pytest.raises(StillWaiting):
            second.leadership.acquire(_patience(2))
        assert first.directory is not None
        end = JobEnd.now("FINISHED", CompletedCheckpoint(metadata(7), "/savepoints/savepoint-1"), published=False)
        first.directory.record_end(end)
        assert first.leadership.stood_by(end), "its own"
        first.leadership.release()
        led(second)
        assert second.directory is not None
        found = second.directory.read_end()
        assert found == end and second.leadership.stood_by(end)
        second.directory.record_end(end.with_rows_published())
        assert second.leadership.stood_by(end.with_rows_published()), "it is still the same"
        second.leadership.release()
        assert not led(new_standby()).leadership.stood_by(end), "a driver that begins now"

    def test_an_end_from_before_zookeeper_was_used_is_none_that_it_stood_by(
        self, new_standby: NewDriver, tmp_path: Path
    ) -> None:
        end = JobEnd.now("FINISHED")
        JobDirectory(str(tmp_path / "chk"), JOB_ID).record_end(end)
        home = led(new_standby())
        assert home.directory is not None
        assert home.directory.read_end() == end and not home.leadership.stood_by(end)

    def test_it_waits_for_zookeeper(self, tmp_path: Path) -> None:
        settings = ZooKeeperSettings("127.0.0.1:1", session_timeout_ms=500, retry_wait_ms=10)
        home = JobHome.of(JOB_ID, CheckpointSettings(directory=str(tmp_path)), settings)
        with pytest.raises(StillWaiting):
            home.leadership.acquire(_patience(3))


def _patience(turns: int) -> Callable[[float], None]:
    left = [turns * 10]

    def pause(seconds: float) -> None:
        left[0] -= 1
        if not left[0]:
            raise StillWaiting
        time.sleep(min(seconds, 0.02))

    return pause


class TestOneKeeper:
    """A job that is kept in ZooKeeper is not driven by drivers that do not ask there, and the other way round."""

    def test_a_driver_without_zookeeper_is_refused(self, new_standby: NewDriver, tmp_path: Path) -> None:
        led(new_standby()).leadership.release()
        with pytest.raises(JobLockedError, match=r"is decided in ZooKeeper /.*Set high-availability\.type"):
            JobDirectory(str(tmp_path / "chk"), JOB_ID).lock()

    def test_another_root_is_refused(self, new_standby: NewDriver, zookeeper: ZooKeeperServer, tmp_path: Path) -> None:
        led(new_standby()).leadership.release()
        checkpoint = CheckpointSettings(directory=str(tmp_path / "chk"))
        other = JobHome.of(JOB_ID, checkpoint, zookeeper.settings(root="/elsewhere"))
        with pytest.raises(JobLockedError, match=r"is kept in ZooKeeper /.* and this driver is set to .*/elsewhere"):
            other.leadership.acquire(time.sleep)

    def test_while_a_driver_holds_the_directory(self, new_standby: NewDriver, tmp_path: Path) -> None:
        with JobDirectory(str(tmp_path / "chk"), JOB_ID), pytest.raises(JobLockedError, match="another driver runs"):
            new_standby().leadership.acquire(time.sleep)

    def test_the_extra_is_named_when_it_is_missing(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        for name in [name for name in sys.modules if name.startswith(("kazoo", "holdfast.checkpoint.zookeeper."))]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, "kazoo", None)
        with pytest.raises(MissingExtraError, match=r"needs the package 'kazoo'.*holdfast\[zookeeper\]"):
            JobHome.of(JOB_ID, CheckpointSettings(directory=str(tmp_path)), ZooKeeperSettings("127.0.0.1:1"))

    def test_checkpoints_in_memory_are_refused(self) -> None:
        with pytest.raises(ConfigurationError, match=r"set execution\.checkpointing\.dir"):
            JobHome.of(JOB_ID, CheckpointSettings(), ZooKeeperSettings("127.0.0.1:1"))
