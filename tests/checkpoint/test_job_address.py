"""What a driver leaves beside the checkpoints of its job, so that other hosts find it."""

from __future__ import annotations

import stat
import time
from pathlib import Path

import pytest

from holdfast.checkpoint.job_address import AddressFiles
from holdfast.errors import StorageError
from holdfast.storage.filesystem import Storage
from tests.checkpoint.homes import NewDriver, address_at, new_driver_of
from tests.checkpoint.samples import JOB_ID

FIRST = address_at("http://first:8081", "first", job_name="invoices", application_id="app-1")
SECOND = address_at("http://second:8081", "second")


@pytest.fixture(params=["directory", "zookeeper"])
def new_driver(request: pytest.FixtureRequest, tmp_path: Path) -> NewDriver:
    return new_driver_of(request.param, request, tmp_path)


@pytest.fixture
def files(tmp_path: Path) -> AddressFiles:
    """As another host sees them."""
    return AddressFiles(Storage.for_uri(str(tmp_path / "chk")), JOB_ID)


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_it_is_there_while_the_driver_leads(new_driver: NewDriver, files: AddressFiles) -> None:
    leadership = new_driver().leadership
    leadership.publish_address(FIRST, "secret")
    assert files.read() is None, "it does not lead yet"
    leadership.acquire(time.sleep)
    left = files.read()
    assert left == FIRST
    assert files.read_token() == "secret"
    number = leadership.next_attempt()
    left = files.read()
    assert left is not None
    assert (left.attempt, left.job_name, left.application_id) == (number, "invoices", "app-1")
    leadership.release()
    assert files.read() is None
    with pytest.raises(StorageError, match="token"):
        files.read_token()


def test_a_server_that_comes_later_is_shown_with_the_attempt(new_driver: NewDriver, files: AddressFiles) -> None:
    leadership = new_driver().leadership
    leadership.acquire(time.sleep)
    number = leadership.next_attempt()
    leadership.publish_address(FIRST, None)
    left = files.read()
    assert left is not None
    assert left.attempt == number


def test_what_a_dead_driver_left_goes_when_the_next_one_leads(new_driver: NewDriver, files: AddressFiles) -> None:
    files.write(FIRST, "secret")
    leadership = new_driver().leadership
    leadership.acquire(time.sleep)
    assert files.read() is None, "this driver has no server"
    leadership.publish_address(SECOND, "other")
    assert files.read() == SECOND
    assert files.read_token() == "other"


def test_a_driver_that_is_not_asked_any_more_leaves_what_the_next_one_wrote(
    new_driver: NewDriver, files: AddressFiles
) -> None:
    leadership = new_driver().leadership
    leadership.acquire(time.sleep)
    leadership.publish_address(FIRST, "secret")
    files.write(SECOND, "other")
    leadership.release()
    assert files.read() == SECOND
    assert files.read_token() == "other"


def test_only_the_owner_can_look(tmp_path: Path, files: AddressFiles) -> None:
    folder = tmp_path / "chk" / JOB_ID / "server"
    folder.mkdir(parents=True, mode=0o755)
    files.write(FIRST, "secret")
    assert (_mode(folder), _mode(folder / "address"), _mode(folder / "token")) == (0o700, 0o600, 0o600)
    assert b"secret" not in (folder / "address").read_bytes()
    assert sorted(path.name for path in folder.iterdir()) == ["address", "token"]


def test_without_a_token_none_of_an_earlier_driver_stays(tmp_path: Path, files: AddressFiles) -> None:
    files.write(FIRST, "secret")
    files.write(SECOND, None)
    assert not (tmp_path / "chk" / JOB_ID / "server" / "token").exists()


def test_a_file_that_is_no_address_is_told(tmp_path: Path, files: AddressFiles) -> None:
    files.write(FIRST, "secret")
    (tmp_path / "chk" / JOB_ID / "server" / "address").write_bytes(b"http://old:8081")
    with pytest.raises(StorageError, match=r"server/address is not the address of a driver.*Delete it"):
        files.read()


def test_a_storage_that_fails_costs_the_address_and_not_the_job(
    tmp_path: Path, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "chk" / JOB_ID).mkdir(parents=True)
    (tmp_path / "chk" / JOB_ID / "server").write_text("a file is in the way")
    leadership = new_driver_of("directory", request, tmp_path)().leadership
    leadership.publish_address(FIRST, "secret")
    leadership.acquire(time.sleep)
    assert leadership.next_attempt() == 1
    assert "Other hosts do not find this driver" in caplog.text
    leadership.release()
