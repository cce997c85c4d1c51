"""Programs that give something else here than on PyFlink. The list is strict: one that gives the same must leave it."""

from __future__ import annotations

from fnmatch import fnmatchcase

#: By program, or a pattern of programs: what differs.
DIFFERENCES: dict[str, str] = {
    "async_io.*": "part 4: there is no AsyncDataStream",
    "config.*": "part 3: there is no ExecutionConfig",
    "dependencies.*": "part 6: files and archives do not reach the functions",
    "function_metrics.*": "part 5: functions have no metrics",
    "kafka.*": "part 8: there are neither CSV rows nor RowFieldExtractorSchema",
    "output.collected_in_order*": "part 7: the subtasks of a source are collected as they come",
    "output.encoded_rows": "part 7: the encoder writes Python's form",
    "output.encoded_scalars": "part 7: the encoder writes Python's form",
    "output.encoded_tuples": "part 7: the encoder writes Python's form",
    "output.printed_collections": "part 7: print writes Python's form",
    "output.printed_doubles": "part 7: print writes Python's form",
    "output.printed_floats": "part 7: print writes Python's form",
    "output.printed_kinds_of_rows": "part 7: print writes Python's form",
    "output.printed_rows*": "part 7: print writes Python's form",
    "output.printed_scalars": "part 7: print writes Python's form",
    "output.printed_times": "part 7: print writes Python's form",
    "output.printed_tuples": "part 7: print writes Python's form",
    "output.read_with_next": "part 8: there is no CloseableIterator.next",
    "surface.*": "part 8: there are no state backends, storages, resources and statuses of PyFlink's names",
    "tables.*": "part 9: there is no SQL in the middle of a program",
}


def reason(name: str) -> str | None:
    return next((why for pattern, why in DIFFERENCES.items() if fnmatchcase(name, pattern)), None)
