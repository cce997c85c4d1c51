"""Who may ask, by which name, for which directories, and how much."""

from __future__ import annotations

import base64
import http.client
import resource
import shutil
import socket
import stat
import subprocess
from pathlib import Path

import pytest

from holdfast.cli.drivers import client_of
from holdfast.cli.errors import CommandError
from holdfast.cli.rest_client import RestClient
from holdfast.errors import ConfigurationError
from holdfast.server.directories import ForbiddenDirectoryError, resolve_inside
from holdfast.server.jobs_directory import JobsDirectory
from holdfast.server.token import obtain_token, read_token
from tests.server.serving import JOB, request, serving


def _basic(password: str, user: str = "anybody") -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@pytest.mark.parametrize("path", ["/jobs", "/v1/jobs", "/metrics", "/openapi.json", "/nonsense", f"/jobs/{JOB}/stop"])
def test_without_the_token_nothing_is_told(served, path):
    token = served.server.token
    for header in (
        None, "", "Bearer", "Bearer ", "Bearer wrong", f"Bearer {token}x", f"bearer {token[:-1]}", f"Token {token}",
        _basic("wrong"), _basic(""), "Basic !!!", "Basic", token,
    ):
        headers = {} if header is None else {"Authorization": header}
        answer = request(served.server.url + path, "GET", headers=headers)
        assert answer.status == 401, header
        assert "oken" in answer.error
        assert answer.headers["www-authenticate"].startswith("Bearer")


def test_the_token_as_bearer_and_as_password(served):
    token = served.server.token
    for header in (f"Bearer {token}", f"bearer {token}", _basic(token), _basic(token, "")):
        assert served.call("GET", "/jobs", Authorization=header).status == 200


def test_the_page_itself_needs_no_token(served):
    answer = request(served.server.url + "/", "GET")
    assert answer.status == 200
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert served.server.token not in answer.body


def test_the_token_is_switched_off_only_by_saying_so(in_process, tmp_path):
    with serving(tmp_path, **{"rest.auth.type": "none"}) as served:
        assert served.server.token is None
        assert request(served.server.url + "/jobs", "GET").status == 200


def test_the_token_file_is_private_and_stays(tmp_path):
    path = tmp_path / "jobs" / "token"
    token = obtain_token(path)
    assert len(token) >= 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert obtain_token(path) == read_token(path) == token
    assert [entry.name for entry in path.parent.iterdir()] == ["token"]


def test_a_token_file_that_others_can_read_is_refused(tmp_path):
    path = tmp_path / "token"
    obtain_token(path)
    path.chmod(0o644)
    with pytest.raises(ConfigurationError, match="0644"):
        obtain_token(path)
    path.chmod(0o600)
    path.write_text("\n")
    with pytest.raises(ConfigurationError, match="empty"):
        obtain_token(path)


def test_a_name_that_points_here_from_outside_is_refused(served):
    for host in ("evil.example", f"evil.example:{served.port}", "", "[::1", "127.0.0.1.evil.example"):
        answer = served.call("GET", "/jobs", Host=host)
        assert answer.status in (400, 421), host
    for host in (f"127.0.0.1:{served.port}", f"localhost:{served.port}", f"[::1]:{served.port}", "LOCALHOST"):
        assert served.call("GET", "/jobs", Host=host).status == 200


def test_more_names_can_be_allowed(in_process, tmp_path):
    with serving(tmp_path, **{"holdfast.rest.allowed-hosts": "jobs.example; other.example"}) as served:
        assert served.call("GET", "/jobs", Host="other.example").status == 200
        assert served.call("GET", "/jobs", Host="evil.example").status == 421


def test_pages_of_other_sites_cannot_send_requests(in_process, tmp_path):
    with serving(tmp_path, **{"rest.auth.type": "none"}) as served:
        for origin in ("http://evil.example", "null", "http://[", f"http://127.0.0.1:{served.port + 1}"):
            answer = served.call("PATCH", f"/jobs/{JOB}", Origin=origin)
            assert answer.status == 403, origin
        assert served.call("GET", "/jobs", Origin=served.server.url).status == 200
        assert served.get(f"/jobs/{JOB}/status")["status"] in ("CREATED", "RUNNING")


def test_directories_of_requests(served, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    inside = tmp_path / "savepoints"
    inside.mkdir(exist_ok=True)
    (inside / "link").symlink_to(outside)
    tricks = [
        f"{inside}/../outside", f"{inside}/%2e%2e/outside", f"file://{inside}/%2e%2e/outside",
        f"file://{inside}/%252e%252e/outside", f"{inside}/link", f"file://{inside}/link/deeper", "/etc", "relative",
        "../up", str(inside) + "x", "s3://bucket/anywhere", "file:relative", f"{inside}/a\x00b", "http://[bad",
        f"{inside}\\..\\..\\outside", "~/savepoints",
    ]
    for trick in tricks:
        for path, field in (("savepoints", "target-directory"), ("stop", "targetDirectory")):
            answer = served.call("POST", f"/jobs/{JOB}/{path}", {field: trick})
            assert answer.status == 403, trick
            assert repr(trick)[1:-1] in answer.error or trick in answer.error
    assert list(outside.iterdir()) == []
    assert served.get(f"/jobs/{JOB}/status")["status"] in ("CREATED", "RUNNING")


def test_directories_that_may_be_named(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "way").symlink_to(root)
    assert resolve_inside(str(root), [str(root)]) == str(root)
    assert resolve_inside(f"{root}/a/b", [f"file://{root}"]) == f"{root}/a/b"
    assert resolve_inside(f"file://{root}/a%20b", [str(root)]) == f"{root}/a b"
    # The way to a configured directory may lead over links.
    assert resolve_inside(f"{tmp_path}/way/x", [f"{tmp_path}/way"]) == f"{root}/x"
    assert resolve_inside("s3://bucket/sp/x", ["s3://bucket/sp/"]) == "s3://bucket/sp/x"
    for named, allowed in (
        ("s3://bucket/spx", "s3://bucket/sp"), ("s3://other/sp", "s3://bucket/sp"), ("s3://bucket/sp", str(root)),
        (str(root), "s3://bucket"), ("gs://bucket/sp", "s3://bucket/sp"),
    ):
        with pytest.raises(ForbiddenDirectoryError, match="allowed-directories"):
            resolve_inside(named, [allowed])


def test_further_directories_can_be_allowed(in_process, tmp_path):
    with serving(tmp_path, **{"holdfast.rest.allowed-directories": f"{tmp_path}/a;{tmp_path}/b"}) as served:
        served.await_checkpoints()
        trigger = served.post(f"/jobs/{JOB}/savepoints", {"target-directory": f"{tmp_path}/b/c"})
        operation = served.await_operation(f"/jobs/{JOB}/savepoints/{trigger}")
        assert Path(operation["location"]).parent == tmp_path / "b" / "c"


def test_a_long_body_is_refused_before_it_is_sent(served):
    """Only its announcement and its first bytes were sent when the answer comes."""
    with socket.create_connection(("127.0.0.1", served.port), timeout=10) as connection:
        head = (
            f"POST /jobs/{JOB}/savepoints HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\n"
            f"Authorization: Bearer {served.server.token}\r\nContent-Length: {100 << 20}\r\n\r\n"
        )
        connection.sendall(head.encode() + b"x" * 1000)
        answer = ""
        while "max-content-length" not in answer:
            received = connection.recv(65536)
            assert received, answer
            answer += received.decode()
    assert answer.startswith("HTTP/1.1 413")


@pytest.mark.parametrize("announced", [True, False])
def test_a_hundred_megabytes_are_refused_and_not_kept(served, announced):
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
    headers = {"Authorization": f"Bearer {served.server.token}"}
    if announced:
        headers["Content-Length"] = str(100 << 20)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    chunks = (b"x" * (1 << 20) for _ in range(100))
    connection.request("POST", f"/jobs/{JOB}/savepoints", chunks, headers, encode_chunked=not announced)
    answer = connection.getresponse()
    assert answer.status == 413
    assert b"rest.server.max-content-length" in answer.read()
    connection.close()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 << 10
    assert served.get(f"/jobs/{JOB}/status")["status"] in ("CREATED", "RUNNING")


def test_the_jobs_directory_is_private(served, tmp_path):
    for directory in ("jobs", "jobs/drivers", "jobs/logs"):
        assert stat.S_IMODE((tmp_path / directory).stat().st_mode) == 0o700
    for record in (tmp_path / "jobs" / "drivers").iterdir():
        assert stat.S_IMODE(record.stat().st_mode) == 0o600


def test_a_taken_port_is_told(in_process, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationError, match=r"rest\.bind-port"), serving(
            tmp_path, **{"rest.bind-port": str(port)}
        ):
            pass
        # The next one of a list is tried.
        with serving(tmp_path, **{"rest.bind-port": f"{port},0"}) as served:
            assert served.port != port


def test_without_certificate_there_is_no_https(in_process, tmp_path):
    with pytest.raises(ConfigurationError, match="tls-certificate"), serving(
        tmp_path, **{"security.ssl.rest.enabled": "true"}
    ):
        pass


def test_https(in_process, tmp_path):
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    if shutil.which("openssl") is None:
        pytest.skip("openssl, which makes a certificate for this test, is not installed")
    subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-batch", "-subj",
            "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate),
        ],
        check=True,
        capture_output=True,
    )
    tls = {
        "security.ssl.rest.enabled": "true",
        "holdfast.rest.tls-certificate": str(certificate),
        "holdfast.rest.tls-key": str(key),
    }
    with serving(tmp_path, **tls) as served:
        assert served.server.url.startswith("https://")
        (record,) = JobsDirectory(tmp_path / "jobs").living()
        assert client_of(record).get("/jobs")["jobs"][0]["id"] == JOB
        # Whoever has found the address beside the checkpoints trusts it by what stands there.
        left = served.server.address_of(served.job, None)
        client = RestClient(left.url, served.server.token_of(served.job), certificates=left.authority)
        assert client.driver_name() == left.driver
        assert client.get(f"/jobs/{JOB}")["jid"] == JOB
        with pytest.raises(CommandError, match="CERTIFICATE_VERIFY_FAILED"):
            RestClient(left.url).driver_name()
