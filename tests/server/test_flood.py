"""Connections without a token, by the thousand and as slow as can be: neither the job nor requests with one notice."""

from __future__ import annotations

import http.client
import os
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.hostile.outcome import EXACT, REFUSED, is_a_case
from tests.server.flood import KINDS
from tests.server.serving import JOB, Served, serving

CONNECTIONS = 2_000
#: Exact is what harms neither the job nor requests with a token.
FLOOD = ("idle, slow and many connections", "job server")


@contextmanager
def _descriptors(limit: int) -> Iterator[None]:
    """This process, with its job, may open so many files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextmanager
def _flood(served: Served, kind: str) -> Iterator[None]:
    """``CONNECTIONS`` of that kind are there while the block runs."""
    command = [sys.executable, "-m", "tests.server.flood", str(served.port), str(CONNECTIONS), kind]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield
        assert process.poll() is None, "the flood ended before the test"
        process.communicate("end\n", timeout=20)


def _open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_flood_stops_neither_the_job_nor_requests_with_a_token(in_process, tmp_path, kind, record_property):
    is_a_case(record_property, *FLOOD, EXACT)
    with _descriptors(1_024), serving(tmp_path) as served:
        served.await_checkpoints()
        before = _open_descriptors()
        with _flood(served, kind):
            completed = served.await_checkpoints()["counts"]["completed"]
            for _ in range(20):
                began = time.monotonic()
                assert served.get(f"/jobs/{JOB}/status")["status"] == "RUNNING"
                assert time.monotonic() - began < 5
            path = f"/jobs/{JOB}/savepoints"
            assert "location" in served.await_operation(f"{path}/{served.post(path, {})}")
            counts = served.await_checkpoints(completed + 3)["counts"]
            assert _open_descriptors() - before < 250
        assert counts["restored"] == counts["failed"] == 0


def test_descriptors_that_the_job_needs_are_not_taken_by_connections(in_process, tmp_path, record_property):
    is_a_case(record_property, *FLOOD, EXACT)
    with serving(tmp_path) as served:
        served.await_checkpoints()
        # Other tests of this process may have left some open.
        used = max(map(int, os.listdir("/proc/self/fd"))) + 1
        limit = max(400, 2 * used)
        held = []
        # With 60 left of 400 or more the job has begun to use its reserve.
        with _descriptors(limit):
            held = [os.open("/dev/null", os.O_RDONLY) for _ in range(limit - 60 - used)]
            try:
                with _flood(served, "idle"):
                    assert served.get(f"/jobs/{JOB}/status")["status"] == "RUNNING"
                    assert _open_descriptors() < limit - 30
                    served.await_checkpoints(served.await_checkpoints()["counts"]["completed"] + 3)
            finally:
                for descriptor in held:
                    os.close(descriptor)


def test_connections_that_never_shake_hands_count(in_process, tmp_path, record_property):
    """A TLS connection is one from its first packet on."""
    is_a_case(record_property, *FLOOD, EXACT)
    certificate, key = _certificate(tmp_path)
    tls = {
        "security.ssl.rest.enabled": "true",
        "holdfast.rest.tls-certificate": str(certificate),
        "holdfast.rest.tls-key": str(key),
        "holdfast.rest.max-connections-per-address": "10",
    }
    with serving(tmp_path, **tls) as served:
        # What the job opens is open then.
        served.wait(lambda: served.client.get_checkpoint_statistics().counts.completed)
        before = _open_descriptors()
        silent = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(50)]
        try:
            served.wait(lambda: _open_descriptors() - before - len(silent) <= 12)
            completed = served.client.get_checkpoint_statistics().counts.completed
            served.wait(lambda: served.client.get_checkpoint_statistics().counts.completed > completed + 3)
        finally:
            for connection in silent:
                connection.close()


def _certificate(directory: Path) -> tuple[Path, Path]:
    certificate, key = directory / "cert.pem", directory / "key.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -batch -subj /CN=localhost"
    subprocess.run([*command.split(), "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    return certificate, key


@pytest.fixture
def hasty(in_process, tmp_path) -> Iterator[Served]:
    with serving(tmp_path, **{"holdfast.rest.request-timeout": "500 ms"}) as served:
        yield served


def _trickle(served: Served, head: str, piece: bytes, seconds: float = 5) -> bytes:
    """What is answered to a request that goes on in small pieces, until the server ends the connection."""
    with socket.create_connection(("127.0.0.1", served.port), timeout=seconds) as connection:
        connection.sendall(head.encode())
        answer, end = b"", time.monotonic() + seconds
        connection.settimeout(0.05)
        while time.monotonic() < end:
            try:
                connection.send(piece)
                got = connection.recv(65_536)
            except TimeoutError:
                continue
            except ConnectionError:
                return answer
            if not got:
                return answer
            answer += got
    raise AssertionError(f"the connection was still open after {seconds} s; it answered {answer!r}")


def test_a_head_that_does_not_end_is_answered_in_time(hasty, record_property):
    is_a_case(record_property, *FLOOD, REFUSED)
    answer = _trickle(hasty, "GET /jobs HTTP/1.1\r\nHost: 127.0.0.1\r\n", b"x-more: y\r\n")
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"holdfast.rest.request-timeout" in answer


def test_a_body_that_does_not_end_is_answered_in_time(hasty, record_property):
    is_a_case(record_property, *FLOOD, REFUSED)
    head = f"POST /jobs/{JOB}/savepoints HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n"
    answer = _trickle(hasty, f"{head}Authorization: Bearer {hasty.server.token}\r\n\r\n", b" ")
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"holdfast.rest.request-timeout" in answer
    # What was refused already is not answered again.
    refused = _trickle(hasty, f"{head}\r\n", b" ")
    assert refused.startswith(b"HTTP/1.1 401 ")
    assert b"HTTP/1.1 408" not in refused


def test_a_silent_connection_is_closed(hasty, record_property):
    is_a_case(record_property, *FLOOD, EXACT)
    assert _trickle(hasty, "", b"") == b""
    assert hasty.get(f"/jobs/{JOB}/status")["status"] in ("CREATED", "RUNNING")


def test_requests_one_after_the_other_each_have_their_time(hasty):
    connection = http.client.HTTPConnection("127.0.0.1", hasty.port, timeout=5)
    connection.connect()
    made = connection.sock
    for _ in range(8):
        connection.request("GET", "/jobs", headers={"Authorization": f"Bearer {hasty.server.token}"})
        answer = connection.getresponse()
        assert (answer.status, bool(answer.read())) == (200, True)
        time.sleep(0.2)
    assert connection.sock is made, "the connection was closed in between"
    connection.close()


@pytest.mark.parametrize(
    ("method", "path", "body", "wrong"),
    [
        ("POST", f"/jobs/{JOB}/savepoints", {"targetDirectory": "x"}, "targetDirectory"),
        ("POST", f"/jobs/{JOB}/stop", {"target-directory": "x"}, "target-directory"),
        ("POST", f"/jobs/{JOB}/checkpoints", {"type": "FULL"}, "type"),
        ("POST", "/savepoint-disposal", {"savepoint-path": "x", "force": True}, "force"),
        (
            "PUT", f"/jobs/{JOB}/resource-requirements",
            {"v": {"parallelism": {"upperBound": 2, "upper-bound": 3}}}, "upper-bound",
        ),
        ("PUT", f"/jobs/{JOB}/resource-requirements", {"v": {"parallelism": {"upperBound": 2}, "x": 1}}, "x"),
    ],
)
def test_a_field_that_is_not_known_is_an_error(served, method, path, body, wrong, record_property):
    is_a_case(record_property, "a field that is not known", "job server", REFUSED)
    answer = served.call(method, path, body)
    assert answer.status == 400
    assert f"unknown field `{wrong}`" in answer.error
    assert served.get(f"/jobs/{JOB}/status")["status"] in ("CREATED", "RUNNING")
