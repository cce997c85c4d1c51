"""Judges the directories of checkpoints and savepoints, as driver and executors have tried them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from holdfast.doctor.facts import HostFacts, StorageFacts
from holdfast.doctor.findings import Finding, green, red, yellow
from holdfast.doctor.judge_hosts import name_of


def judge_storages(
    storages: Mapping[str, str], driver: HostFacts, executors: Sequence[HostFacts]
) -> Iterator[Finding]:
    """``storages``: by URI, the setting that names it."""
    for uri, setting in storages.items():
        tried = [
            (name, one)
            for name, facts in [("the driver", driver), *((name_of(one), one) for one in executors)]
            for one in facts.storages
            if one.uri == uri
        ]
        yield from judge_storage(setting, uri, tried)


def judge_storage(setting: str, uri: str, tried: Sequence[tuple[str, StorageFacts]]) -> Iterator[Finding]:
    failed = [(name, one.failure) for name, one in tried if one.failure is not None]
    for name, failure in failed:
        advice = f"Give every host access to {setting}, under one name: docs/how-to/storage.md says what each needs."
        yield red(f"{setting} from {name}", str(failure), advice)
    if failed or not tried:
        return
    ways = sorted({one.access for _, one in tried if one.access is not None})
    if len(ways) > 1:
        advice = "Hosts reach it in different ways: give them one configuration of Hadoop."
        yield yellow(setting, f"{uri} by {'; '.join(ways)}", advice)
        return
    slowest = max(one.seconds for _, one in tried)
    hosts = _hosts(len(tried) - 1)
    seen = f"{uri}: written, read, listed and deleted from {hosts}, within {slowest:.1f} s"
    way = f" (by {ways[0]})" if ways else ""
    shared = "" if tried[0][1].exclusive_create else ". Two can create one name: start drivers of a job one by one"
    yield green(setting, f"{seen}{way}{shared}")


def _hosts(executors: int) -> str:
    return f"the driver and {executors} {'executor' if executors == 1 else 'executors'}"


def judge_no_checkpoints(enabled: bool, has_directory: bool) -> Iterator[Finding]:
    """What a job keeps when it fails, by its settings alone."""
    if not enabled:
        seen = "no periodic checkpoints: a job that fails ends, and begins anew"
        yield yellow("checkpoints", seen, "Set execution.checkpointing.interval, for instance to 10s.")
    if not has_directory:
        seen = "kept in the driver's memory, and lost with it"
        yield yellow("checkpoints", seen, "Set execution.checkpointing.dir to a directory that all hosts share.")
