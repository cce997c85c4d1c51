"""Exclusive creation on object stores: by requests that the server refuses where the name exists."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from google.auth.credentials import Credentials
from google.auth.exceptions import GoogleAuthError, MutualTLSChannelError, RefreshError, TransportError
from google.auth.transport.requests import AuthorizedSession

from holdfast.errors import MissingExtraError, StorageError
from holdfast.storage import conditional
from holdfast.storage.check import check_storage
from holdfast.storage.filesystem import Storage

pytestmark = pytest.mark.slow

NAMES = 30
#: A process that creates the same names as another, and tells which it got.
CREATOR = f"""
import sys
from holdfast.storage.filesystem import Storage
storage = Storage.for_uri(sys.argv[1])
storage.exists("nothing")
print("ready", flush=True)
sys.stdin.readline()
won = [n for n in range({NAMES}) if storage.create_exclusive(f"job/attempts/{{n}}", sys.argv[2].encode())]
print(*won)
"""


@pytest.fixture(params=["s3", "gs"])
def uri(request: pytest.FixtureRequest) -> str:
    return f"{request.getfixturevalue(request.param)}/root"


def start(uri: str, name: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", CREATOR, uri, name]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


def test_of_two_processes_that_create_the_same_names_one_gets_each(uri: str) -> None:
    processes = {name: start(uri, name) for name in ("one", "two")}
    for process in processes.values():
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    for process in processes.values():
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    won = {name: set(map(int, process.communicate(timeout=120)[0].split())) for name, process in processes.items()}
    assert won["one"] | won["two"] == set(range(NAMES))
    assert not won["one"] & won["two"]
    storage = Storage.for_uri(uri)
    for name, numbers in won.items():
        assert {storage.read(f"job/attempts/{number}") for number in numbers} <= {name.encode()}


def test_a_creation_whose_answer_was_lost_is_known_again(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was heard, and is sent again: the server refuses the object because of itself."""
    for creator in (conditional.S3ObjectCreator, conditional.GcsObjectCreator):
        put = creator._put

        def twice(self: Any, *arguments: Any, put: Any = put) -> bool:
            put(self, *arguments)
            return bool(put(self, *arguments))

        monkeypatch.setattr(creator, "_put", twice)
    storage = Storage.for_uri(uri)
    assert storage.create_exclusive("name", b"first")
    assert not storage.create_exclusive("name", b"first"), "with the same content, but by somebody else"


def test_a_server_that_does_not_heed_conditions_is_refused(s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def unconditionally(self: Any, key: str, data: bytes, mark: str) -> bool:
        self._client.put_object(Bucket=self._bucket, Key=key, Body=data)
        return True

    monkeypatch.setattr(conditional.S3ObjectCreator, "_put", unconditionally)
    with pytest.raises(StorageError, match=r"2 of two creators .* server of S3 that heeds If-None-Match"):
        check_storage(f"{s3}/folder")


def test_a_missing_bucket_is_told_as_elsewhere(s3: str) -> None:
    with pytest.raises(StorageError, match=r"NO_SUCH_BUCKET.*the bucket does not exist: create it"):
        Storage.for_uri(f"{s3}-not/folder").create_exclusive("name", b"")


def test_a_server_that_is_away_is_told(s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = Storage.for_uri(f"{s3}/folder")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with pytest.raises(StorageError, match=r"cannot create s3://.*/folder/name.*the server cannot be reached"):
        storage.create_exclusive("name", b"")


class LateToken(Credentials):
    """A token is had when so many tries have failed."""

    def __init__(self, failures: int, failure: GoogleAuthError) -> None:
        super().__init__()
        self._left, self._failure, self.tries = failures, failure, 0

    def refresh(self, request: object) -> None:
        self.tries += 1
        if self.tries <= self._left:
            raise self._failure
        self.token = "token"


def use_credentials(patch: pytest.MonkeyPatch, credentials: Credentials) -> None:
    patch.setattr(conditional, "_gcs_session", lambda *_: AuthorizedSession(credentials))


@pytest.mark.parametrize("failure", [RefreshError("invalid_grant"), TransportError("no route to the host")])
def test_a_token_that_cannot_be_had_is_told(monkeypatch: pytest.MonkeyPatch, failure: GoogleAuthError) -> None:
    credentials = LateToken(100, failure)
    use_credentials(monkeypatch, credentials)
    told = rf"cannot create gs://.*/name: no access token.*{failure}.*check GOOGLE_APPLICATION_CREDENTIALS"
    with pytest.raises(StorageError, match=told):
        Storage.for_uri("gs://anonymous@bucket/root").create_exclusive("name", b"")
    assert credentials.tries == 4


def test_a_token_is_asked_for_again(gs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use_credentials(monkeypatch, LateToken(2, RefreshError("the server of tokens is busy")))
    assert Storage.for_uri(gs).create_exclusive("name", b"first")


@pytest.mark.parametrize("failure", [MutualTLSChannelError("no certificate"), TransportError("no route to the host")])
def test_credentials_that_cannot_be_had_are_told(monkeypatch: pytest.MonkeyPatch, failure: GoogleAuthError) -> None:
    def fail(**_: object) -> None:
        raise failure

    conditional._gcs_session.cache_clear()
    monkeypatch.setattr("google.auth.default", fail)
    with pytest.raises(OSError, match=rf"no credentials.*{failure}.*check GOOGLE_APPLICATION_CREDENTIALS"):
        conditional.GcsObjectCreator.of("gs://bucket/root")


def test_a_session_without_credentials_does_without_google_auth(monkeypatch: pytest.MonkeyPatch) -> None:
    conditional._gcs_session.cache_clear()
    monkeypatch.setitem(sys.modules, "google.auth.exceptions", None)
    monkeypatch.setenv("CLOUD_STORAGE_EMULATOR_ENDPOINT", "http://127.0.0.1:1")
    with pytest.raises(OSError, match="the server cannot be reached"):
        conditional.GcsObjectCreator.of("gs://anonymous@bucket/root").create("name", b"")
    assert conditional._failures_of_google_auth() == ()


@pytest.mark.parametrize(
    ("uri", "module", "told"),
    [("s3", "boto3", r"'boto3'.*holdfast\[s3\]"), ("gs", "requests", r"'requests'.*holdfast\[gs\]")],
    indirect=["uri"],
)
def test_the_extra_is_named_when_it_is_missing(
    uri: str, module: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    conditional._s3_client.cache_clear()
    conditional._gcs_session.cache_clear()
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=told):
        Storage.for_uri(uri).create_exclusive("name", b"")
    with pytest.raises(StorageError, match=rf"could not create a name that only one may create: .*{told}"):
        check_storage(uri)
