"""Judges hosts: Python, packages, clocks and disks of the driver and of every executor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.doctor.facts import DirectoryFacts, HostFacts
from holdfast.doctor.findings import Finding, Level, green, red, yellow

#: Where these differ, what the driver sends is not what executors can run.
_MUST_BE_EQUAL = ("holdfast", "pyspark")
_SOME_SKEW, _MUCH_SKEW = 1.0, 30.0
_MB, _GB = 1 << 20, 1 << 30
_FULL, _NEARLY_FULL, _NEARLY_FULL_SHARE = 500 * _MB, 5 * _GB, 0.1


def judge_hosts(driver: HostFacts, executors: Sequence[HostFacts]) -> Iterator[Finding]:
    yield judge_driver(driver)
    for executor in executors:
        yield from judge_python(driver, executor)
    yield from judge_clocks(driver, executors)
    yield from judge_disks([("the driver", driver), *((name_of(one), one) for one in executors)])


def name_of(executor: HostFacts) -> str:
    return f"executor {executor.host}:{executor.process}"


def judge_driver(driver: HostFacts) -> Finding:
    versions = ", ".join(f"{name} {version}" for name, version in driver.packages.items() if version is not None)
    seen = f"Python {driver.python} ({driver.executable}), {versions}"
    missing = [name for name, version in driver.packages.items() if version is None]
    if driver.import_failure is not None:
        return red("driver", f"{seen}; {driver.import_failure}", "Install Holdfast with its dependencies again.")
    if missing:
        advice = f"Install {', '.join(missing)}: Holdfast, or what its settings name, needs them."
        return red("driver", f"{seen}; {', '.join(missing)} missing", advice)
    return green("driver", seen)


def judge_python(driver: HostFacts, executor: HostFacts) -> Iterator[Finding]:
    """What an executor has beside what the driver has."""
    subject = name_of(executor)
    where = f"the Python of this executor, {executor.executable} on {executor.host}"
    if executor.import_failure is not None:
        advice = f"Install Holdfast with its dependencies in {where}, or ship an archive that has them (--archives)."
        yield red(subject, f"cannot import Holdfast: {executor.import_failure}", advice)
    if _minor(executor.python) != _minor(driver.python):
        seen = f"Python {executor.python}, and the driver has {driver.python}"
        yield red(subject, seen, "Give both the same minor version (spark.pyspark.python).")
    different = list(_different(driver, executor))
    if different:
        bad = any(name in _MUST_BE_EQUAL or there is None for name, _, there in different)
        seen = ", ".join(f"{name} {there or 'missing'} (driver: {here})" for name, here, there in different)
        level = Level.RED if bad else Level.YELLOW
        yield Finding(level, subject, seen, f"Install the driver's versions in {where}.")
    if executor.import_failure is None and not different and _minor(executor.python) == _minor(driver.python):
        yield green(subject, f"Python {executor.python} and packages as on the driver")


def _different(driver: HostFacts, executor: HostFacts) -> Iterator[tuple[str, str, str | None]]:
    for name, here in driver.packages.items():
        there = executor.packages.get(name)
        # Without Holdfast there is a finding already, with the reason.
        told = name == "holdfast" and executor.import_failure is not None and there is None
        if here is not None and here != there and not told:
            yield name, here, there


def _minor(python: str) -> tuple[str, ...]:
    return tuple(python.split(".")[:2])


def judge_clocks(driver: HostFacts, executors: Sequence[HostFacts]) -> Iterator[Finding]:
    """One finding for the host whose clock is farthest away. Processes of the driver's own host have its clock."""
    others = [(one.host, one.clock) for one in executors if one.host != driver.host and one.clock is not None]
    if not others:
        return
    host, clock = max(others, key=lambda other: abs(other[1].ahead) - other[1].error)
    seen = f"{abs(clock.ahead):.2f} s {'ahead of' if clock.ahead > 0 else 'behind'} the driver (±{clock.error:.2f} s)"
    least = abs(clock.ahead) - clock.error
    advice = (
        f"Let NTP or chrony set the clock of {host}. Processing-time timers and windows, the time to live of state and "
        "event time taken from the clock are those of the host that a subtask runs on."
    )
    if least > _MUCH_SKEW:
        yield red("clocks", f"{host} is {seen}", advice)
    elif least > _SOME_SKEW:
        yield yellow("clocks", f"{host} is {seen}", advice)
    else:
        yield green("clocks", f"of {len({name for name, _ in others})} other hosts, {host} is farthest: {seen}")


def judge_disks(processes: Sequence[tuple[str, HostFacts]]) -> Iterator[Finding]:
    """A directory that several processes of a host share is judged once."""
    seen: set[tuple[str, str, str]] = set()
    for name, facts in processes:
        for directory in facts.directories:
            mark = (facts.host, directory.path, directory.purpose)
            if mark not in seen:
                seen.add(mark)
                yield judge_disk(name, facts, directory)


def judge_disk(name: str, facts: HostFacts, directory: DirectoryFacts) -> Finding:
    subject = f"{directory.purpose} of {name}"
    seen = f"{directory.path}: {_size(directory.free)} of {_size(directory.total)} free"
    choose = f"choose another directory with {directory.purpose}"
    if directory.failure is not None:
        advice = f"Give user {facts.user} access to it, or {choose}."
        return red(subject, f"{directory.path}: {directory.failure}", advice)
    if directory.free < _FULL:
        return red(subject, seen, f"Free space, or {choose}.")
    if directory.free < _NEARLY_FULL or directory.free < _NEARLY_FULL_SHARE * directory.total:
        return yellow(subject, seen, f"State, shuffles and snapshots need space: free some, or {choose}.")
    if directory.owner not in ("", facts.user, "root"):
        advice = f"Who owns it can read and change local state: {choose} that belongs to {facts.user}."
        return yellow(subject, f"{directory.path} belongs to {directory.owner}, and jobs run as {facts.user}", advice)
    return green(subject, seen)


def _size(count: int) -> str:
    return f"{count / _GB:.1f} GB" if count >= _GB else f"{count / _MB:.0f} MB"
