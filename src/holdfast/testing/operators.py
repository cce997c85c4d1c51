"""Harnesses of functions on one stream: plain and keyed ones."""

from __future__ import annotations

from typing import Any, Unpack

from holdfast.testing.keyed import KeyedView
from holdfast.testing.operator_places import Key, OnStream
from holdfast.testing.options import HarnessOptions, Setup
from holdfast.testing.pushing import OneInput


class OperatorHarness(OneInput):
    """Map, flat map, filter and process functions on a stream without keys, broadcast functions on it, operators, and
    ``CheckpointedFunction`` state.

    Options are those of ``HarnessOptions``.
    """

    def __init__(self, function: Any, **options: Unpack[HarnessOptions]) -> None:
        super().__init__(OnStream(function), Setup.of(options))


class KeyedOperatorHarness(OneInput, KeyedView):
    """Functions behind a ``key_by``: map, flat map, filter, reduce, keyed process and keyed broadcast functions, and
    operators.

    ``key_selector`` and ``key_type`` are those of ``DataStream.key_by``. Options are those of ``HarnessOptions``.
    """

    def __init__(
        self, function: Any, key_selector: Any, key_type: Any = None, **options: Unpack[HarnessOptions]
    ) -> None:
        super().__init__(OnStream(function, Key(key_selector, key_type)), Setup.of(options))
