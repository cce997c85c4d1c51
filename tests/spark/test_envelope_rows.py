"""Envelopes on their way to Spark."""

from __future__ import annotations

import sys

import pyarrow as pa
import pytest

from holdfast.runtime.envelope import Envelope
from holdfast.spark.envelope_rows import envelope_batches


@pytest.mark.parametrize("passed_on", [False, True])
def test_what_was_handed_to_spark_is_let_go(passed_on: bool) -> None:
    """A worker sends envelopes for as long as the job runs."""
    payload = b"x" * 1000
    before = sys.getrefcount(payload)
    given = pa.py_buffer(payload) if passed_on else payload
    for _ in range(5):
        (batch,) = envelope_batches(iter([Envelope(0, 0, 0, 0, 0, 0, given)]), [7])
        assert batch.column("payload").to_pylist() == [payload]
    del batch, given
    assert sys.getrefcount(payload) == before
