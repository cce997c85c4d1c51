"""What comes out of an operator under test."""

from __future__ import annotations

from typing import Any

from holdfast.runtime.envelope import Envelope, unpack_header
from holdfast.runtime.plan import EdgeSpec
from holdfast.runtime.router import EdgeReader


class Output:
    """The rows of one edge, with their event times."""

    def __init__(self, edge: EdgeSpec) -> None:
        self.edge_id = edge.edge_id
        self.rows: list[tuple[Any, int | None]] = []
        self._reader = EdgeReader(edge)

    def capture(self, envelope: Envelope) -> None:
        """Take the rows of an envelope, if it is of this edge."""
        header, body = unpack_header(envelope.payload)
        if envelope.edge == self.edge_id and header.rows:
            batch = self._reader.read(header, body)
            times = batch.timestamps if batch.timestamps is not None else [None] * len(batch)
            self.rows += zip(batch.values, times, strict=True)

    def values(self) -> list[Any]:
        return [value for value, _ in self.rows]
