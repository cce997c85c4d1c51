"""Judges what a driver listens on and connects to beside Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.doctor.findings import Finding, green, red


@dataclass(frozen=True)
class ServerFacts:
    """The job server that a driver would have here; ``failure`` where it cannot listen."""

    address: str
    loopback: bool
    port: int = 0
    failure: str | None = None
    missing_packages: Sequence[str] = ()


def judge_server(facts: ServerFacts) -> Finding:
    subject = "job server"
    if facts.missing_packages:
        advice = "pip install 'holdfast[server]' for the driver, or set rest.enabled=false."
        return red(subject, f"{', '.join(facts.missing_packages)} missing", advice)
    if facts.failure is not None:
        advice = "rest.bind-address must be an address of this host; without a job server set rest.enabled=false."
        return red(subject, facts.failure, advice)
    reach = "reached from this host only" if facts.loopback else "reached from other hosts"
    return green(subject, f"{facts.address}, port {facts.port} is free; {reach}")


def judge_zookeeper(quorum: str, failure: str | None) -> Finding:
    if failure is None:
        return green("ZooKeeper", f"{quorum} answers")
    advice = "Check high-availability.zookeeper.quorum, and that this host reaches its servers."
    return red("ZooKeeper", failure, advice)
