"""Functions of whole columns in a harness."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from holdfast.common import Types
from holdfast.datastream import KeyedBatchContext, KeyedBatchFunction, RuntimeContext
from holdfast.datastream.state import ValueStateDescriptor
from holdfast.testing import KeyedOperatorHarness


class Visits(KeyedBatchFunction):
    """How often a key has come, after each epoch."""

    descriptor = ValueStateDescriptor("visits", Types.LONG())

    def open(self, runtime_context: RuntimeContext) -> None:
        self.visits = runtime_context.get_state(self.descriptor)

    def process_batch(self, keys: pa.Array, batch: pa.RecordBatch, ctx: KeyedBatchContext) -> pa.RecordBatch:
        counted = keys.value_counts()
        came, times = counted.field("values"), counted.field("counts")
        visits = pc.add(pc.fill_null(self.visits.get_many(came), 0), times)
        self.visits.put_many(came, visits)
        return pa.record_batch({"key": came, "visits": visits})


@pytest.mark.parametrize("backend", ["heap", "lmdb", "rocksdb"])
def test_it_gets_the_rows_of_an_epoch(backend: str) -> None:
    types: dict[str, Any] = {
        "input_type": Types.TUPLE([Types.STRING(), Types.LONG()]),
        "output_type": Types.ROW_NAMED(["key", "visits"], [Types.STRING(), Types.LONG()]),
    }
    with KeyedOperatorHarness(Visits(), lambda row: row[0], Types.STRING(), backend=backend, **types) as harness:
        harness.push_all([("a", 1), ("b", 1), ("a", 2)])
        assert harness.output() == [], "they wait for the others of their epoch"
        harness.end_epoch()
        assert sorted(map(tuple, harness.take_output())) == [("a", 2), ("b", 1)]
        harness.push(("a", 3))
        with harness.restored() as again:
            again.push(("a", 4)).end_epoch()
            assert [tuple(row) for row in again.take_output()] == [("a", 4)]
            again.assert_state(Visits.descriptor, {"a": 4, "b": 1})
