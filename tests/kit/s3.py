"""A real S3 server on loopback: that of moto, in a process of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any
from unittest.mock import patch

from holdfast.testing.chaos.processes import die_with_parent, wait_until
from tests.kit.ports import free_port

_START_SECONDS = 60.0
_SERVER = Path(__file__).with_name("s3_server.py")
#: What Amazon asks its user to be allowed, once nobody is let in without credentials.
_POLICY = '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}'


class S3Server:
    """A server with buckets in its memory. As a context manager it is gone at the end.

    Credentials are not looked at, unless ``guarded``: then only those of ``environment`` are let in.
    """

    def __init__(self, directory: Path, guarded: bool = False) -> None:
        self._directory = directory
        self._guarded = guarded
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._key = ("testing", "testing")

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def environment(self) -> Mapping[str, str]:
        """For every process that is to use it."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": self._key[0],
            "AWS_SECRET_ACCESS_KEY": self._key[1],
            "AWS_DEFAULT_REGION": "us-east-1",
        }

    @contextmanager
    def in_environment(self, **others: str) -> Iterator[None]:
        """This process, and those that it starts, use it."""
        with patch.dict(os.environ, {**self.environment, **others}):
            yield

    def create_bucket(self, name: str) -> None:
        self._client("s3").create_bucket(Bucket=name)

    def __enter__(self) -> S3Server:
        self._directory.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, str(_SERVER), str(self._port)]
        with (self._directory / "s3.log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=die_with_parent
            )
        wait_until(self._answers, _START_SECONDS, "an answer of the S3 server", interval=0.1)
        if self._guarded:
            self._guard()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait(20)

    def _guard(self) -> None:
        users = self._client("iam")
        users.create_user(UserName="tests")
        users.put_user_policy(UserName="tests", PolicyName="s3", PolicyDocument=_POLICY)
        made = users.create_access_key(UserName="tests")["AccessKey"]
        self._key = (made["AccessKeyId"], made["SecretAccessKey"])
        request = urllib.request.Request(f"{self.endpoint}/moto-api/reset-auth", data=b"0", method="POST")
        request.add_header("Content-Type", "text/plain")
        urllib.request.urlopen(request, timeout=10).close()

    def _client(self, service: str) -> Any:
        import boto3

        return boto3.client(
            service,
            "us-east-1",
            endpoint_url=self.endpoint,
            aws_access_key_id=self._key[0],
            aws_secret_access_key=self._key[1],
        )

    def _answers(self) -> bool | None:
        assert self._process is not None
        if self._process.poll() is not None:
            raise AssertionError((self._directory / "s3.log").read_text(errors="replace"))
        try:
            socket.create_connection(("127.0.0.1", self._port), timeout=5).close()
            return True
        except OSError:
            return None
