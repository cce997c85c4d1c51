"""How rows and event time come to harnesses with one input and with two."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

from holdfast.errors import ProgramError
from holdfast.runtime.envelope import ChannelStatus
from holdfast.testing.harness import ENDED, Harness
from holdfast.testing.inputs import Input


class AnyInputs(Harness):
    """An operator with inputs, by their number."""

    def advance_watermark(self, timestamp: int) -> Self:
        """Event time of all inputs has come to ``timestamp``: timers up to it fire."""
        for each in self._epochs.inputs:
            self._advance(each, timestamp)
        return self

    def end_input(self) -> Self:
        """No more rows on any input: event time ends, ``finish`` is called, and so ends the epoch."""
        for each in self._epochs.inputs:
            self._running().send_status(each, ENDED)
        return self.end_epoch()

    def _push(self, target: Input, values: Iterable[Any], timestamps: Sequence[int | None] | None) -> Self:
        self._running().send(target, values, timestamps)
        return self

    def _advance(self, target: Input, timestamp: int) -> Self:
        status = ChannelStatus(max(target.watermark, timestamp), False, False)
        self._running().send_status(target, status)
        return self

    def _end(self, target: Input) -> Self:
        self._running().send_status(target, ENDED)
        return self


class OneInput(AnyInputs):
    """One stream of rows, and perhaps a broadcast one beside it."""

    def push(self, value: Any, timestamp: int | None = None) -> Self:
        """One row."""
        return self.push_all([value], None if timestamp is None else [timestamp])

    def push_all(self, values: Iterable[Any], timestamps: Sequence[int | None] | None = None) -> Self:
        """Several rows, in one batch."""
        return self._push(self._epochs.inputs[0], values, timestamps)

    def push_broadcast(self, value: Any, timestamp: int | None = None) -> Self:
        """One element of the broadcast stream."""
        return self.push_all_broadcast([value], None if timestamp is None else [timestamp])

    def push_all_broadcast(self, values: Iterable[Any], timestamps: Sequence[int | None] | None = None) -> Self:
        """Several elements of the broadcast stream, in one batch. A job pushes those of an epoch before its rows."""
        return self._push(self._broadcast_input(), values, timestamps)

    def advance_watermark(self, timestamp: int) -> Self:
        """Event time has come to ``timestamp``: timers up to it fire. With a broadcast stream, only when both have."""
        return self._advance(self._epochs.inputs[0], timestamp)

    def advance_broadcast_watermark(self, timestamp: int) -> Self:
        """Event time of the broadcast stream has come to ``timestamp``."""
        return self._advance(self._broadcast_input(), timestamp)

    def end_broadcast_input(self) -> Self:
        """No more elements of the broadcast stream: from now on the other one alone moves event time."""
        return self._end(self._broadcast_input())

    def _broadcast_input(self) -> Input:
        if len(self._epochs.inputs) == 1:
            raise ProgramError("The operator has no broadcast stream: make the harness with broadcast_states=[...].")
        return self._epochs.inputs[1]


class TwoInputs(AnyInputs):
    """Two streams of rows. Event time is the lesser of the two."""

    def push1(self, value: Any, timestamp: int | None = None) -> Self:
        """One row of the first stream."""
        return self.push_all1([value], None if timestamp is None else [timestamp])

    def push2(self, value: Any, timestamp: int | None = None) -> Self:
        """One row of the second stream."""
        return self.push_all2([value], None if timestamp is None else [timestamp])

    def push_all1(self, values: Iterable[Any], timestamps: Sequence[int | None] | None = None) -> Self:
        """Several rows of the first stream, in one batch. A job pushes those of an epoch before those of the second."""
        return self._push(self._epochs.inputs[0], values, timestamps)

    def push_all2(self, values: Iterable[Any], timestamps: Sequence[int | None] | None = None) -> Self:
        """Several rows of the second stream, in one batch."""
        return self._push(self._epochs.inputs[1], values, timestamps)

    def advance_watermark1(self, timestamp: int) -> Self:
        """Event time of the first stream has come to ``timestamp``."""
        return self._advance(self._epochs.inputs[0], timestamp)

    def advance_watermark2(self, timestamp: int) -> Self:
        """Event time of the second stream has come to ``timestamp``."""
        return self._advance(self._epochs.inputs[1], timestamp)

    def end_input1(self) -> Self:
        """No more rows of the first stream: from now on the second alone moves event time."""
        return self._end(self._epochs.inputs[0])

    def end_input2(self) -> Self:
        """No more rows of the second stream: from now on the first alone moves event time."""
        return self._end(self._epochs.inputs[1])
