"""How much may grow in a job that runs for weeks."""

from __future__ import annotations

from collections.abc import Iterable

from tests.soak.samples import Growth

_MEGABYTES_PER_HOUR = 2.0
#: What goes up and down by itself: files of checkpoints and of stores between two compactions, threads that come and
#: go. What grows for good is beyond it soon.
_SLACK = {"threads": 4.0, "descriptors": 12.0, "files": 200.0, "sockets": 2.0}
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
        elif (long or not kind.startswith("threads of jvm")) and growth.after - growth.before > _SLACK[figure]:
            found.append(f"{growth.what}: {growth.before:.1f} at first, {growth.after:.1f} at last")
    return found


def _unjudged(growths: Iterable[Growth]) -> list[str]:
    """Roles of too few of whose processes anything is known."""
    roles = [growth.what.split()[2] for growth in growths if growth.what.startswith("megabytes of ")]
    return [
        f"{roles.count(role)} processes were judged as {role}, and not {least}: the others did not live long enough"
        for role, least in _JUDGED.items()
        if roles.count(role) < least
    ]
