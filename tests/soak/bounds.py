"""How much may grow in a job that runs for weeks."""

from __future__ import annotations

from collections.abc import Iterable

from tests.soak.samples import Growth

_MEGABYTES_PER_HOUR = 2.0
#: What goes up and down by itself: files of checkpoints and of stores between two compactions, threads that come and
#: go. What grows for good is beyond it soon.
_SLACK = {"threads": 4.0, "descriptors": 12.0, "files": 200.0, "sockets": 2.0}
#: Folders that hold what was published, or grow with it.
_GROWING = ("out",)


def broken(growths: Iterable[Growth], long: bool) -> list[str]:
    """What went beyond its bound. A short run says nothing about memory, nor about threads of the JVM: Spark fills two
    pools of a hundred in its first minutes.
    """
    found = []
    for growth in growths:
        kind, _, where = growth.what.partition(" in ")
        if where in _GROWING:
            continue
        figure = kind.partition(" of ")[0]
        if figure == "megabytes":
            if long and " of " in kind and growth.per_hour > _MEGABYTES_PER_HOUR:
                found.append(f"{growth.what}: {growth.per_hour:+.1f} MB an hour; at most {_MEGABYTES_PER_HOUR} may be")
        elif (long or not kind.startswith("threads of jvm")) and growth.after - growth.before > _SLACK[figure]:
            found.append(f"{growth.what}: {growth.before:.1f} at first, {growth.after:.1f} at last")
    return found
