"""Checkpoint directories from everywhere, and what a driver listens on and connects to."""

from __future__ import annotations

from dataclasses import replace

from holdfast.doctor.findings import Level
from holdfast.doctor.judge_services import ServerFacts, judge_server, judge_zookeeper
from holdfast.doctor.judge_storage import judge_no_checkpoints, judge_storages
from tests.doctor.samples import DRIVER, EXECUTOR, STORAGE

NAMED = {STORAGE.uri: "execution.checkpointing.dir"}


def with_storage(host, **changes):
    return replace(host, storages=(replace(STORAGE, **changes),))


def test_one_that_all_can_use():
    (finding,) = judge_storages(NAMED, DRIVER, [EXECUTOR, with_storage(EXECUTOR, seconds=1.24)])
    assert (finding.level, finding.subject) == (Level.GREEN, "execution.checkpointing.dir")
    assert finding.seen == (
        "s3://bucket/checkpoints: written, read, listed and deleted from the driver and 2 executors, within 1.2 s"
    )


def test_one_that_a_host_cannot_use_is_told_for_each_host():
    broken = with_storage(EXECUTOR, failure="could not see what the driver wrote")
    findings = list(judge_storages(NAMED, DRIVER, [broken, EXECUTOR, replace(broken, process=9)]))
    assert [(finding.level, finding.subject) for finding in findings] == [
        (Level.RED, "execution.checkpointing.dir from executor host-a:7"),
        (Level.RED, "execution.checkpointing.dir from executor host-a:9"),
    ]
    assert all("could not see what the driver wrote" in finding.seen for finding in findings)


def test_one_that_the_driver_cannot_use():
    (finding,) = judge_storages(NAMED, with_storage(DRIVER, failure="no such bucket"), [EXECUTOR])
    assert (finding.level, finding.subject) == (Level.RED, "execution.checkpointing.dir from the driver")


def test_ways_to_reach_it():
    one = with_storage(DRIVER, access="WebHDFS: it answers")
    (same,) = judge_storages(NAMED, one, [with_storage(EXECUTOR, access="WebHDFS: it answers")])
    assert same.level is Level.GREEN and "(by WebHDFS: it answers)" in same.seen
    (other,) = judge_storages(NAMED, one, [with_storage(EXECUTOR, access="libhdfs: it is there")])
    assert other.level is Level.YELLOW and "WebHDFS: it answers; libhdfs: it is there" in other.seen


def test_one_without_exclusive_creation_is_told():
    (finding,) = judge_storages(NAMED, with_storage(DRIVER, exclusive_create=False), [])
    assert finding.level is Level.GREEN and "start drivers of a job one by one" in finding.seen


def test_what_no_host_could_try_is_not_judged():
    assert not list(judge_storages(NAMED, replace(DRIVER, storages=()), []))


def test_jobs_without_checkpoints():
    assert not list(judge_no_checkpoints(True, True))
    assert [finding.level for finding in judge_no_checkpoints(False, False)] == [Level.YELLOW] * 2
    (memory,) = judge_no_checkpoints(True, False)
    assert "lost with it" in memory.seen


def test_job_servers():
    here = ServerFacts("127.0.0.1", True, 8081)
    assert judge_server(here).seen == "127.0.0.1, port 8081 is free; reached from this host only"
    assert "other hosts" in judge_server(replace(here, loopback=False)).seen
    taken = judge_server(replace(here, failure="the port is taken"))
    assert (taken.level, taken.seen) == (Level.RED, "the port is taken")
    missing = judge_server(replace(here, missing_packages=("uvicorn",)))
    assert missing.level is Level.RED and "holdfast[server]" in missing.advice


def test_zookeeper():
    assert judge_zookeeper("a:2181", None).level is Level.GREEN
    finding = judge_zookeeper("a:2181", "does not answer")
    assert (finding.level, finding.seen) == (Level.RED, "does not answer")
