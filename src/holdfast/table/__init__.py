"""PyFlink's Table API, which is not here: every name of it says what takes its place."""

from __future__ import annotations

from holdfast.table.advice import answer_names_of_tables as _answer_names_of_tables

_answer_names_of_tables(__name__)
