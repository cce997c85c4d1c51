"""Harnesses of functions on two streams, which are connected or joined."""

from __future__ import annotations

from typing import Any, Unpack

from holdfast.testing.keyed import KeyedView
from holdfast.testing.operator_places import Key, OnTwoStreams
from holdfast.testing.options import HarnessOptions, Setup
from holdfast.testing.pushing import TwoInputs


class ConnectedHarness(TwoInputs):
    """Co-map, co-flat-map and co-process functions on streams without keys.

    Options are those of ``HarnessOptions``.
    """

    def __init__(self, function: Any, **options: Unpack[HarnessOptions]) -> None:
        super().__init__(OnTwoStreams(function), Setup.of(options))


class KeyedConnectedHarness(TwoInputs, KeyedView):
    """Co-map, co-flat-map and keyed co-process functions behind a ``key_by`` of both streams; and joins, with
    ``operation=lambda first, second, function: first.interval_join(second).between(...).process(function)``.

    The key selectors and the type are those of ``ConnectedStreams.key_by``.
    """

    def __init__(
        self,
        function: Any,
        key_selector1: Any,
        key_selector2: Any,
        key_type: Any = None,
        **options: Unpack[HarnessOptions],
    ) -> None:
        keys = Key(key_selector1, key_type), Key(key_selector2, key_type)
        super().__init__(OnTwoStreams(function, keys), Setup.of(options))
