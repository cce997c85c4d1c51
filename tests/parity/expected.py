"""Programs that give something else here than on PyFlink. The list is strict: one that gives the same must leave it."""

from __future__ import annotations

from fnmatch import fnmatchcase

#: By program, or a pattern of programs: what differs.
DIFFERENCES: dict[str, str] = {
    "state.timers_that_set_timers_in_a_batch": "Flink ignores them, as here; PyFlink's workers set them too late",
    "values.equality_of_rows_with_other_names": (
        "PyFlink calls the types equal; here a row has its fields by name, in columns, SQL and stored state"
    ),
    "windows.a_trigger_that_fires_again": (
        "it fires at each multiple of its interval, as in Flink; in workers of PyFlink a timer that one of the same "
        "watermark sets comes too late"
    ),
    "streams.rows_without_a_timestamp": "None, as PyFlink's documents have it; PyFlink gives the smallest long",
}


def reason(name: str) -> str | None:
    return next((why for pattern, why in DIFFERENCES.items() if fnmatchcase(name, pattern)), None)
