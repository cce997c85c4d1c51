"""Serializers of PyFlink's workers. Its names say what to use instead."""

from __future__ import annotations

from holdfast.coverage.answers import answer_missing_names as _answer_missing_names

_answer_missing_names(__name__)
