"""Sinks whose rows travel to the driver: print and collect."""

from __future__ import annotations

import pickle
import threading

import msgspec
import pytest

from holdfast.common import Row, RowKind, Types
from holdfast.connectors.collect import Collection, CollectSink
from holdfast.connectors.committed import CommittedNames
from holdfast.connectors.print import PrintSink
from holdfast.errors import TransactionError
from holdfast.runtime.sink import PublishOn
from holdfast.testing.contracts.sinks import SinkContract, pre_commit, transaction_name


class TestCollectContract(SinkContract):
    @pytest.fixture
    def sink(self, tmp_path):
        self.collection = Collection()
        yield self.collection.sink()
        self.collection.close()

    def visible(self, tmp_path):
        return self.collection.available()


class TestPrintContract(SinkContract):
    @pytest.fixture
    def sink(self, capsys):
        self.capsys = capsys
        self.seen: list[int] = []
        return PrintSink()

    def visible(self, tmp_path):
        self.seen += [int(line) for line in self.capsys.readouterr().out.splitlines()]
        return self.seen


def test_printed_lines_name_their_subtask_when_there_are_several(capsys):
    for identifier, parallelism in ((None, 1), (None, 2), ("id", 1), ("id", 2)):
        sink = PrintSink(identifier)
        sink.bind_parallelism(parallelism)
        sink.commit([pre_commit(sink, ["b"], subtask=1, epoch=1), pre_commit(sink, [("a", 1)], subtask=0, epoch=1)])

    assert capsys.readouterr().out.splitlines() == [
        "('a', 1)", "b", "1> ('a', 1)", "2> b", "id> ('a', 1)", "id> b", "id:1> ('a', 1)", "id:2> b",
    ]


def test_printing_is_per_epoch_and_may_go_to_stderr(capsys):
    sink = PrintSink(to_stderr=True)
    sink.commit([pre_commit(sink, [2], epoch=10), pre_commit(sink, [1], epoch=9)])

    assert sink.publish_on is PublishOn.EPOCH
    assert capsys.readouterr().err == "1\n2\n"


def test_rows_come_in_the_order_of_epochs_and_subtasks_of_each_commit():
    collection = Collection()
    sink = collection.sink()
    sink.commit([pre_commit(sink, [3], epoch=2), pre_commit(sink, [2], subtask=1), pre_commit(sink, [1], subtask=0)])
    sink.commit([pre_commit(sink, [4], epoch=1, attempt=1)])

    assert collection.available() == [1, 2, 3, 4]
    assert collection.available() == []


def test_iteration_waits_for_rows_and_ends_with_the_job():
    collection = Collection()
    sink = collection.sink()
    handle = pre_commit(sink, [1, 2])

    def job() -> None:
        sink.commit([handle])
        collection.finish()

    thread = threading.Timer(0.05, job)
    thread.start()
    assert list(collection) == [1, 2]
    thread.join()
    assert list(collection) == []


def test_the_jobs_error_comes_after_its_last_row():
    collection = Collection()
    sink = collection.sink()
    sink.commit([pre_commit(sink, [1])])
    collection.finish(ValueError("the job failed"))
    rows = iter(collection)

    assert next(rows) == 1
    with pytest.raises(ValueError, match="the job failed"):
        next(rows)


def test_a_restarted_attempt_delivers_no_handle_twice_but_rows_of_new_attempts():
    collection = Collection()
    sink = collection.sink()
    old = pre_commit(sink, [1], epoch=5, attempt=0)
    sink.commit([old])
    sink.recover_and_commit([old])
    sink.commit([pre_commit(sink, [2], epoch=5, attempt=1)])

    assert collection.available() == [1, 2]


def test_rows_nobody_collects_are_an_error():
    collection = Collection()
    sink = collection.sink()
    handle = pre_commit(sink, [1])
    collection.close()

    with pytest.raises(TransactionError, match=r"does not exist in this process.*keep its iterator open"):
        sink.commit([handle])
    with pytest.raises(TransactionError, match="does not exist"):
        CollectSink("unknown").commit([handle])


PAIR = Types.TUPLE([Types.LONG(), Types.STRING()])


@pytest.mark.parametrize(
    ("type_info", "rows", "pickled"),
    [
        (PAIR, [(1, "a"), (2, None)], False),
        (None, [(1, "a")], True),
        (Types.TUPLE([Types.LONG(), Types.PICKLED_BYTE_ARRAY()]), [(1, "a")], True),
        (PAIR, [(1, "a"), ("not", "of the type")], True),
        (Types.ROW([Types.LONG()]), [(1,)], True),
        (Types.ROW([Types.LONG()]), [Row(1)], True),
        (Types.ROW([Types.LONG()]), [Row(f0=1)], False),
        (Types.ROW([Types.LONG()]), [Row.of_kind(RowKind.DELETE, 1)], True),
    ],
)
def test_collected_rows_are_pickled_only_where_a_type_cannot_give_them_back(type_info, rows, pickled):
    collection = Collection()
    sink = collection.sink()
    sink.bind_type(type_info)
    handle = pre_commit(sink, rows, epoch=1)
    assert sink.unpickles(handle) is pickled
    sink.commit([handle])
    found = collection.available()
    assert found == rows and [isinstance(row, Row) for row in found] == [isinstance(row, Row) for row in rows]


def test_collected_rows_of_the_version_before_are_pickled():
    collection = Collection()
    sink = collection.sink()
    sink.bind_type(PAIR)
    name = transaction_name(epoch=1)
    handle = msgspec.msgpack.encode({"name": msgspec.to_builtins(name), "rows": pickle.dumps([(1, "a")])})
    assert sink.unpickles(handle)
    sink.commit([handle])
    assert collection.available() == [(1, "a")]


def test_only_the_newest_committed_names_are_remembered():
    committed = CommittedNames(remembered=2)
    assert [committed.add(transaction_name(epoch=epoch)) for epoch in (1, 2, 2, 3, 1, 3)] == [
        True, True, False, True, True, False,
    ]
