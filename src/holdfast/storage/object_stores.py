"""The clients of S3 and GCS, and what their failures mean."""

from __future__ import annotations

import os
import re
from datetime import timedelta
from functools import lru_cache
from typing import Any
from urllib.parse import unquote, urlsplit

from pyarrow import fs

#: A server that is not there is told of within seconds. With pyarrow's own settings it takes several times as long.
_CONNECT_SECONDS = 3
_ATTEMPTS = 3
_GCS_RETRY_SECONDS = 15
_CREDENTIALS = (
    "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, or the profile or role, of this process: "
    "executors get them through spark.executorEnv.* or a role of their hosts"
)
_ADVICE = {
    "NO_SUCH_BUCKET": "the bucket does not exist: create it, or correct its name, region or AWS_ENDPOINT_URL",
    "ACCESS_DENIED": f"the credentials do not allow this; {_CREDENTIALS}",
    "INVALID_ACCESS_KEY_ID": f"the access key is not known there; {_CREDENTIALS}",
    "INVALID_CLIENT_TOKEN_ID": f"the access key is not known there; {_CREDENTIALS}",
    "SIGNATURE_DOES_NOT_MATCH": f"the secret key is not the one of the access key; {_CREDENTIALS}",
    "NETWORK_CONNECTION": "the server cannot be reached: check AWS_ENDPOINT_URL, the region and the network",
}
_ERROR_NAME = re.compile(r"AWS Error ([A-Z0-9_]+)")


def s3_file_system(uri: str) -> Any:
    """For an ``s3:`` URI, with what the environment says: the endpoint of ``AWS_ENDPOINT_URL_S3`` or
    ``AWS_ENDPOINT_URL``, else Amazon's of the bucket's region; credentials as all clients of S3 find them.
    """
    settings = tuple(sorted((name, value) for name, value in os.environ.items() if name.startswith("AWS_")))
    return _s3_file_system(urlsplit(uri).netloc, settings, os.getpid())


# One for all storages of a bucket: to make another, pyarrow waits for every call that is under way, hanging ones too.
# Its threads do not follow into a forked process.
@lru_cache(maxsize=16)
def _s3_file_system(authority: str, settings: tuple[tuple[str, str], ...], process: int) -> Any:
    environment, location = dict(settings), urlsplit(f"s3://{authority}")
    endpoint = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
    options: dict[str, Any] = {}
    if endpoint:
        options |= {"endpoint_override": urlsplit(endpoint).netloc, "scheme": urlsplit(endpoint).scheme}
    else:
        options["region"] = fs.resolve_s3_region(location.hostname or "")
    if location.username:
        options |= {"access_key": unquote(location.username), "secret_key": unquote(location.password or "")}
    return fs.S3FileSystem(
        connect_timeout=_CONNECT_SECONDS,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS),
        # A small object is one request instead of three. A failure is told when the stream is closed.
        allow_delayed_open=True,
        **options,
    )


def gcs_file_system(uri: str) -> Any:
    """For a ``gs:`` URI, with the credentials that Google's libraries find; ``gs://anonymous@bucket/`` has none."""
    return fs.GcsFileSystem(
        anonymous=urlsplit(uri).username == "anonymous", retry_time_limit=timedelta(seconds=_GCS_RETRY_SECONDS)
    )


def advice(error: OSError) -> str | None:
    """What to do about a failure of S3. It has no number and no type, so its name is taken from the text."""
    named = _ERROR_NAME.search(str(error))
    return _ADVICE.get(named[1]) if named else None
