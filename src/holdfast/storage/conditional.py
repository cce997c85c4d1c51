"""Objects of S3 and GCS that are created only where none has their name: ``pyarrow.fs`` cannot ask for that.

The server decides, in one request. An answer may be lost and the request sent again, and then the server refuses the
object because of itself. So every object carries a mark of its creation, and a refusal is compared with it.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import time
from abc import ABC, abstractmethod
from functools import lru_cache
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from holdfast.errors import MissingExtraError

_MARK = "holdfast-creation"
_TRIES = 4
_SECONDS = 20
_CONFLICT_SECONDS = 0.2
_PURPOSE = "creating a file that only one driver may create, as every job in {} does,"
_GCS_CREDENTIALS = (
    "check GOOGLE_APPLICATION_CREDENTIALS, or the login or service account, of this process, and that it reaches the "
    "server of tokens"
)


class ObjectCreator(ABC):
    """Creates objects of one bucket exclusively. Failures are OSErrors."""

    def create(self, key: str, data: bytes) -> bool:
        """Store an object unless the name exists; False then."""
        mark = secrets.token_hex(8)
        return self._put(key, data, mark) or self._mark_of(key) == mark

    @abstractmethod
    def _put(self, key: str, data: bytes, mark: str) -> bool:
        """Ask for it, again where that helps; False when the server refuses it because of an object of that name."""

    @abstractmethod
    def _mark_of(self, key: str) -> str | None:
        """The mark of the object of that name, if it has one."""


class S3ObjectCreator(ObjectCreator):
    """Creates objects of S3 exclusively, by ``If-None-Match: *``, through the client of Amazon's SDK, which finds
    credentials as pyarrow's does.
    """

    def __init__(self, bucket: str, client: Any) -> None:
        self._bucket = bucket
        self._client = client

    @staticmethod
    def of(uri: str, region: str) -> S3ObjectCreator:
        settings = tuple(sorted((name, value) for name, value in os.environ.items() if name.startswith("AWS_")))
        client = _s3_client(urlsplit(uri).netloc, region, settings, os.getpid())
        return S3ObjectCreator(urlsplit(uri).netloc.rpartition("@")[2], client)

    def _put(self, key: str, data: bytes, mark: str) -> bool:
        request = {"Bucket": self._bucket, "Key": key, "Body": data, "Metadata": {_MARK: mark}, "IfNoneMatch": "*"}
        for _ in range(_TRIES):
            answer = self._ask("put_object", request, HTTPStatus.PRECONDITION_FAILED, HTTPStatus.CONFLICT)
            if answer != HTTPStatus.CONFLICT:
                return answer != HTTPStatus.PRECONDITION_FAILED
            # Another request for the name is under way: the server wants to be asked again.
            time.sleep(_CONFLICT_SECONDS)
        raise OSError(f"{_TRIES} times another request for the object {key} was under way")

    def _mark_of(self, key: str) -> str | None:
        found = self._ask("head_object", {"Bucket": self._bucket, "Key": key}, HTTPStatus.NOT_FOUND)
        return found["Metadata"].get(_MARK) if isinstance(found, dict) else None

    def _ask(self, operation: str, request: dict[str, Any], *expected: HTTPStatus) -> dict[str, Any] | int:
        """The answer, or the status of a refusal that is expected."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            answer: dict[str, Any] = getattr(self._client, operation)(**request)
            return answer
        except ClientError as error:
            status = int(error.response["ResponseMetadata"]["HTTPStatusCode"])
            if status in expected:
                return status
            raise OSError(f"AWS Error {_as_pyarrow_names_it(error.response['Error']['Code'])}: {error}") from error
        except BotoCoreError as error:
            raise OSError(f"AWS Error NETWORK_CONNECTION: {error}") from error


class GcsObjectCreator(ObjectCreator):
    """Creates objects of GCS exclusively, by ``ifGenerationMatch=0``, through the JSON interface."""

    def __init__(self, bucket: str, session: Any, endpoint: str) -> None:
        self._bucket = bucket
        self._session = session
        self._endpoint = endpoint

    @staticmethod
    def of(uri: str) -> GcsObjectCreator:
        parts = urlsplit(uri)
        endpoint = os.environ.get("CLOUD_STORAGE_EMULATOR_ENDPOINT") or "https://storage.googleapis.com"
        session = _gcs_session(parts.username == "anonymous", os.getpid())
        return GcsObjectCreator(parts.netloc.rpartition("@")[2], session, endpoint.rstrip("/"))

    def _put(self, key: str, data: bytes, mark: str) -> bool:
        border = f"holdfast-{secrets.token_hex(16)}"
        description = json.dumps({"name": key, "metadata": {_MARK: mark}}).encode()
        body = b"".join(
            [
                f"--{border}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n".encode() + description,
                f"\r\n--{border}\r\nContent-Type: application/octet-stream\r\n\r\n".encode() + data,
                f"\r\n--{border}--\r\n".encode(),
            ]
        )
        status, _ = self._ask(
            "POST",
            f"/upload/storage/v1/b/{quote(self._bucket, safe='')}/o",
            HTTPStatus.PRECONDITION_FAILED,
            params={"uploadType": "multipart", "ifGenerationMatch": "0"},
            headers={"Content-Type": f"multipart/related; boundary={border}"},
            data=body,
        )
        return status != HTTPStatus.PRECONDITION_FAILED

    def _mark_of(self, key: str) -> str | None:
        path = f"/storage/v1/b/{quote(self._bucket, safe='')}/o/{quote(key, safe='')}"
        status, answer = self._ask("GET", path, HTTPStatus.NOT_FOUND)
        return None if status == HTTPStatus.NOT_FOUND else answer.get("metadata", {}).get(_MARK)

    def _ask(self, method: str, path: str, expected: HTTPStatus, **request: Any) -> tuple[int, dict[str, Any]]:
        """Status and answer; OSError for every refusal but ``expected``. What may pass is asked for again."""
        import requests

        for left in range(_TRIES - 1, -1, -1):
            try:
                response = self._session.request(method, self._endpoint + path, timeout=_SECONDS, **request)
            except requests.RequestException as error:
                if not left:
                    raise OSError(f"the server cannot be reached: {error}") from error
                continue
            except _failures_of_google_auth() as error:
                if not left:
                    raise OSError(f"no access token could be had: {error}; {_GCS_CREDENTIALS}") from error
                continue
            if response.status_code == expected:
                return response.status_code, {}
            if response.ok:
                return response.status_code, response.json()
            passes = response.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR
            if not left or not (passes or response.status_code == HTTPStatus.TOO_MANY_REQUESTS):
                raise OSError(f"the server answered {response.status_code}: {response.text[:300]}")
        raise AssertionError("the last try returns or raises")


# Connections do not follow into a forked process.
@lru_cache(maxsize=16)
def _s3_client(authority: str, region: str, settings: tuple[tuple[str, str], ...], process: int) -> Any:
    try:
        import boto3
        from botocore.config import Config
    except ImportError as error:
        raise MissingExtraError("boto3", "s3", _PURPOSE.format("S3")) from error
    environment, location = dict(settings), urlsplit(f"s3://{authority}")
    endpoint = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL") or None
    keys = {}
    if location.username:
        keys = {
            "aws_access_key_id": unquote(location.username),
            "aws_secret_access_key": unquote(location.password or ""),
        }
    # As for pyarrow, buckets of a server that is not Amazon's are part of the path.
    style = {"addressing_style": "path"} if endpoint else {}
    config = Config(
        connect_timeout=_SECONDS, read_timeout=_SECONDS, retries={"total_max_attempts": _TRIES, "mode": "standard"}
    ).merge(Config(s3=style))
    return boto3.Session(region_name=region or None).client("s3", endpoint_url=endpoint, config=config, **keys)


@lru_cache(maxsize=4)
def _gcs_session(anonymous: bool, process: int) -> Any:
    try:
        import requests

        if anonymous:
            return requests.Session()
        import google.auth
        from google.auth.transport.requests import AuthorizedSession
    except ImportError as error:
        package = "requests" if (error.name or "").startswith("requests") else "google-auth"
        raise MissingExtraError(package, "gs", _PURPOSE.format("GCS")) from error
    try:
        credentials, _ = google.auth.default(scopes=["https://www.googleapis.com/auth/devstorage.read_write"])
    except google.auth.exceptions.GoogleAuthError as error:
        raise OSError(f"no credentials could be had: {error}; {_GCS_CREDENTIALS}") from error
    return AuthorizedSession(credentials)  # type: ignore[no-untyped-call]  # it has no types


def _failures_of_google_auth() -> tuple[type[Exception], ...]:
    """None where it is missing: a session without credentials does without it."""
    try:
        from google.auth.exceptions import GoogleAuthError
    except ImportError:
        return ()
    return (GoogleAuthError,)


def _as_pyarrow_names_it(code: str) -> str:
    """``NoSuchBucket`` is ``NO_SUCH_BUCKET`` there."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", code).upper()
