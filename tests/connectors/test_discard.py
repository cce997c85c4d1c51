"""The discarding sink leaves nothing behind and refuses what it cannot have written."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from holdfast.connectors.discard import DiscardSink
from holdfast.errors import TransactionError
from holdfast.runtime.batch import Batch
from holdfast.runtime.sink import TransactionName

NAME = TransactionName("job", "sink", 0, 1, 2, "nonce")


def test_an_epoch_leaves_no_handle_and_no_open_transaction() -> None:
    sink = pickle.loads(pickle.dumps(DiscardSink()))
    transaction = sink.begin(NAME)
    sink.write(transaction, Batch([1, 2, 3]))
    assert sink.pre_commit(transaction) is None
    assert list(sink.open_transactions("job")) == []
    sink.commit([])
    sink.abort(NAME)


def test_rows_are_not_read() -> None:
    def reader(batch: pa.RecordBatch) -> list[int]:
        raise AssertionError("a row was read")

    sink = DiscardSink()
    sink.begin(NAME)
    sink.write(None, Batch.of_arrow(pa.record_batch({"value": [1]}), reader))


def test_a_handle_of_another_sink_is_refused() -> None:
    with pytest.raises(TransactionError, match="another sink"):
        DiscardSink().commit([b"stage-1"])
    with pytest.raises(TransactionError, match="another sink"):
        DiscardSink().recover_and_commit([b"stage-1"])
