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
    "state.timers_that_set_timers_in_a_batch": "Flink ignores them, as here; PyFlink's workers set them too late",
    "streams.facts_of_streams": "part 8: texts of types, and the timeout of buffers",
    "streams.rows_without_a_timestamp": "None, as PyFlink's documents have it; PyFlink gives the smallest long",
    "surface.*": "part 8: there are no state backends, storages, resources and statuses of PyFlink's names",
    "tables.*": "part 9: there is no SQL in the middle of a program",
    "values.a_text_declared_as_a_number_and_collected": "part 2: a chained collect takes what an exchange refuses",
    "values.collected_rows": "part 1: rows of Types.ROW have no names",
    "values.fields_of_*": "part 1: rows of Types.ROW have no names, and chained followers see rows as they were made",
    "values.fractions_and_texts": "part 2: a chained follower sees a FLOAT in double precision",
    "values.rows_alone": "part 1: texts, names and order of rows",
    "values.rows_of_rows": "part 2: chained followers see rows as they were made",
    "values.texts_of_types": "part 8: texts of types",
    "values.times": "part 8: the text of an Instant",
}


def reason(name: str) -> str | None:
    return next((why for pattern, why in DIFFERENCES.items() if fnmatchcase(name, pattern)), None)
