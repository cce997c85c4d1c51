"""How much may grow in a job that runs for weeks."""

from __future__ import annotations

from collections.abc import Iterable

from tests.soak.samples import Growth

_MEGABYTES_PER_HOUR = 2.0
#: What goes up and down by itself, from one mean over minutes to another: half of what single samples were seen to be
#: above and below, or less. What grows for good is beyond it soon.
_SLACK = {
    # 5 to 7.
    "threads of driver": 1.0,
    # 272 to 285: those of Spark's pools that have nothing to do end after a minute.
    "threads of jvm": 4.0,
    # 4 to 6; 1 while it has no store.
    "threads of worker": 1.0,
    # 10 to 13.
    "descriptors of driver": 1.0,
    # 329 to 334.
    "descriptors of jvm": 2.0,
    # 15 to 27: tables of RocksDB between two compactions.
    "descriptors of worker": 6.0,
    # 50 to 200 of stores, for the same reason; 84 to 107 on average of a minute.
    "files": 40.0,
    # 2, and 0 to 3 for a moment when a worker dies.
    "sockets": 0.5,
}
#: The same of a short run, in which stores, pools and attempts have only just begun.
_SLACK_AT_FIRST = {"threads": 4.0, "descriptors": 12.0, "files": 200.0, "sockets": 2.0}
#: The same of the megabytes of a folder.
_FOLDER_SLACK = 10.0
#: Folders that hold what was published, or grow with it.
_GROWING = ("out",)
#: Of each role, as many as live at a time: a role that kills left nobody of for long enough has not been judged.
_JUDGED = {"driver": 1, "jvm": 1, "worker": 3}


def broken(growths: Iterable[Growth], long: bool) -> list[str]:
    """What went beyond its bound. A short run says nothing about memory, nor about threads of the JVM: Spark fills two
    pools of a hundred in its first minutes.
    """
    growths = list(growths)
    found = _unjudged(growths) if long else []
    for growth in growths:
        kind, _, where = growth.what.partition(" in ")
        if where in _GROWING:
            continue
        figure = kind.partition(" of ")[0]
        if figure == "megabytes":
            if not where and long and growth.per_hour > _MEGABYTES_PER_HOUR:
                found.append(f"{growth.what}: {growth.per_hour:+.1f} MB an hour; at most {_MEGABYTES_PER_HOUR} may be")
            elif where and growth.after - growth.before > _FOLDER_SLACK:
                found.append(f"{growth.what}: {growth.before:.1f} at first, {growth.after:.1f} at last")
        elif (long or not kind.startswith("threads of jvm")) and growth.after - growth.before > _slack(kind, long):
            found.append(f"{growth.what}: {growth.before:.1f} at first, {growth.after:.1f} at last")
    return found


def _slack(kind: str, long: bool) -> float:
    """``kind``: a figure, of a process with its number. What a program starts beside Spark's may do what workers do."""
    figure, _, process = kind.partition(" of ")
    if not long:
        return _SLACK_AT_FIRST[figure]
    return _SLACK.get(f"{figure} of {process.split()[0]}", _SLACK[f"{figure} of worker"]) if process else _SLACK[figure]


def _unjudged(growths: Iterable[Growth]) -> list[str]:
    """Roles of too few of whose processes anything is known."""
    roles = [growth.what.split()[2] for growth in growths if growth.what.startswith("megabytes of ")]
    return [
        f"{roles.count(role)} processes were judged as {role}, and not {least}: the others did not live long enough"
        for role, least in _JUDGED.items()
        if roles.count(role) < least
    ]
