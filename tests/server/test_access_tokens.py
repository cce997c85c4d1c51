"""What the token of a job opens, and what a server tells of itself to those who look for it."""

from __future__ import annotations

import pytest

from holdfast.cli.rest_client import RestClient
from holdfast.server.access_tokens import AccessTokens
from holdfast.server.admission import ConnectionLimits
from holdfast.server.certificates import certificates_in
from holdfast.server.settings import ListenSettings
from tests.server.serving import JOB, request, serving


def test_the_token_of_a_job_opens_this_job_alone(served):
    token = served.server.token_of(served.job)
    assert token not in (None, served.server.token)
    for path in (f"/jobs/{JOB}", f"/v1/jobs/{JOB}/status", f"/jobs/{JOB}/checkpoints/config"):
        assert served.call("GET", path, Authorization=f"Bearer {token}").status == 200
    for path in (
        "/jobs", "/jobs/overview", "/jobs/another", "/jobs/", "/v1/jobs", "/config", "/metrics", "/openapi.json",
        f"/jobs//{JOB}", f"/v1/v1/jobs/{JOB}", f"/savepoint-disposal/{JOB}", f"//jobs/{JOB}",
    ):
        assert served.call("GET", path, Authorization=f"Bearer {token}").status == 401, path


def test_tokens_of_jobs_are_different_and_stay():
    tokens = AccessTokens("everything")
    first = tokens.of_job("first")
    assert tokens.of_job("first") == first != tokens.of_job("second")
    assert tokens.allow(first.encode(), "/jobs/first/stop")
    assert not tokens.allow(first.encode(), "/jobs/second/stop")
    assert tokens.allow(b"everything", "/jobs/second/stop")
    assert not tokens.allow(b"", "/jobs/third")


def test_without_tokens_there_is_none_for_a_job():
    assert AccessTokens(None).of_job("job") is None


def test_every_answer_names_the_driver(served):
    name = served.server.address_of(served.job, None).driver
    for path, headers in (("/", {}), ("/jobs", {}), ("/nonsense", {}), ("/", {"Host": "evil.example"})):
        answer = request(served.server.url + path, "GET", headers=headers)
        assert answer.headers["holdfast-driver"] == name
    assert RestClient(served.server.url).driver_name() == name


def test_the_address_of_a_server_on_loopback(served):
    address = served.server.address_of(served.job, "10.0.0.5")
    assert (address.url, address.loopback) == (served.server.url, True), "no name makes it reachable"
    assert (address.job_id, address.job_name, address.needs_token) == (JOB, "counting", True)


@pytest.mark.parametrize(
    ("settings", "host"),
    [
        ({}, "driver-svc"),
        ({"rest.address": "jobs.example"}, "jobs.example"),
    ],
)
def test_a_server_on_all_addresses_is_found_by_the_name_that_executors_use(in_process, tmp_path, settings, host):
    with serving(tmp_path, **{"rest.bind-address": "0.0.0.0", **settings}) as served:
        address = served.server.address_of(served.job, "driver-svc")
        assert (address.url, address.loopback) == (f"http://{host}:{served.port}", False)


@pytest.mark.parametrize(
    ("address", "everywhere", "loopback"),
    [("0.0.0.0", True, False), ("::", True, False), ("10.0.0.5", False, False), ("127.0.0.1", False, True)],
)
def test_where_a_server_listens(address, everywhere, loopback):
    listen = ListenSettings(address, (0,), address, (), None, ConnectionLimits(2, 1), 1_000)
    assert (listen.everywhere, listen.loopback) == (everywhere, loopback)


def test_the_key_beside_a_certificate_is_left_out(tmp_path):
    certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"
    key = "-----BEGIN PRIVATE KEY-----\nSECRET\n-----END PRIVATE KEY-----"
    (tmp_path / "both.pem").write_text(f"{key}\n{certificate}\n{certificate}\n{key}\n")
    assert certificates_in(str(tmp_path / "both.pem")) == f"{certificate}\n{certificate}\n"
