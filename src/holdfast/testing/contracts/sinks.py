"""What every two-phase-commit sink must do."""

from __future__ import annotations

import pickle
import signal
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

import pytest

from holdfast.errors import TransactionError
from holdfast.runtime.batch import Batch
from holdfast.runtime.sink import TransactionName, TwoPhaseCommitSink
from holdfast.testing.contracts.other_process import run_python

JOB = "job-1"
OPERATOR = "sink/of numbers"

_WRITER = """
import os, pickle, signal, sys
from holdfast.runtime.batch import Batch
sink, name, values, pre_commit = pickle.load(open(sys.argv[1], "rb"))
transaction = sink.begin(name)
sink.write(transaction, Batch(values))
if pre_commit:
    sink.pre_commit(transaction)
os.kill(os.getpid(), signal.SIGKILL)
"""

_COMMITTER = """
import pickle, sys
sink, handles = pickle.load(open(sys.argv[1], "rb"))
sink.commit(handles)
"""


def transaction_name(
    epoch: int = 1, subtask: int = 0, attempt: int = 0, nonce: str = "n0", job: str = JOB
) -> TransactionName:
    """A transaction of the suite's operator."""
    return TransactionName(job, OPERATOR, subtask, attempt, epoch, nonce)


def pre_commit(sink: TwoPhaseCommitSink, values: list[Any], **name: Any) -> bytes:
    """The handle of a transaction with these rows; ``name`` is as for ``transaction_name``."""
    transaction = sink.begin(transaction_name(**name))
    sink.write(transaction, Batch(values))
    handle = sink.pre_commit(transaction)
    assert handle is not None
    return handle


def commit_in_process(sink: TwoPhaseCommitSink, handles: list[bytes], directory: Path, **environment: str) -> int:
    """Commit in a process of its own; its exit code."""
    return run_python(_COMMITTER, (sink, handles), directory, **environment)


class SinkContract(ABC):
    """The suite for a sink whose transactions leave nothing outside of their handles. Rows are ints: a sink for rows of
    another type is wrapped in one that makes them.

    A subclass gives the sink by the fixture ``sink``, bound to its type where it wants that, and says by ``visible``
    what a reader sees of it. Both are told the same ``tmp_path``.
    """

    #: Whether transactions leave something outside of their handle: from ``begin`` on, and from ``pre_commit`` on.
    outside_from_begin: ClassVar[bool] = False
    outside: ClassVar[bool] = False
    #: What errors say of a handle that another sink wrote, and of one whose rows are gone, as regular expressions.
    says_foreign: ClassVar[str] = "sink that wrote the checkpoint"
    says_lost: ClassVar[str] = "lost"

    @pytest.fixture
    @abstractmethod
    def sink(self, tmp_path: Path) -> TwoPhaseCommitSink:
        """A sink that has written nothing yet."""

    @abstractmethod
    def visible(self, tmp_path: Path) -> list[int]:
        """What a reader has seen so far, in any order."""

    def test_nothing_is_seen_before_the_commit_and_all_of_it_after(
        self, sink: TwoPhaseCommitSink, tmp_path: Path
    ) -> None:
        handles = [pre_commit(sink, [1, 2], subtask=0), pre_commit(sink, [3], subtask=1)]
        assert self.visible(tmp_path) == []

        sink.commit(handles)

        assert sorted(self.visible(tmp_path)) == [1, 2, 3]
        assert list(sink.open_transactions(JOB)) == []

    def test_committing_again_changes_nothing(self, sink: TwoPhaseCommitSink, tmp_path: Path) -> None:
        handles = [pre_commit(sink, [1], epoch=1), pre_commit(sink, [2], epoch=2)]
        sink.commit(handles[:1])
        sink.commit(handles)
        sink.recover_and_commit(handles)
        sink.commit(handles)

        assert sorted(self.visible(tmp_path)) == [1, 2]

    def test_a_handle_is_enough_for_another_copy_of_the_sink(self, sink: TwoPhaseCommitSink, tmp_path: Path) -> None:
        handle = pre_commit(sink, [1, 2])
        copy = pickle.loads(pickle.dumps(sink))

        copy.recover_and_commit([handle])

        assert sorted(self.visible(tmp_path)) == [1, 2]
        assert copy.name_of(handle) == transaction_name()

    def test_a_transaction_without_rows_has_no_handle(self, sink: TwoPhaseCommitSink, tmp_path: Path) -> None:
        transaction = sink.begin(transaction_name())
        sink.write(transaction, Batch([]))

        assert sink.pre_commit(transaction) is None
        assert list(sink.open_transactions(JOB)) == []

    def test_several_batches_are_one_transaction(self, sink: TwoPhaseCommitSink, tmp_path: Path) -> None:
        transaction = sink.begin(transaction_name())
        for start in range(0, 100, 10):
            sink.write(transaction, Batch(list(range(start, start + 10))))
        handle = sink.pre_commit(transaction)
        assert handle is not None
        sink.commit([handle])

        assert sorted(self.visible(tmp_path)) == list(range(100))

    def test_what_was_discarded_is_gone(self, sink: TwoPhaseCommitSink, tmp_path: Path) -> None:
        transaction = sink.begin(transaction_name())
        sink.write(transaction, Batch([1]))
        sink.discard(transaction)

        assert list(sink.open_transactions(JOB)) == []
        assert self.visible(tmp_path) == []

    def test_of_two_executions_of_an_epoch_only_the_committed_one_is_seen(
        self, sink: TwoPhaseCommitSink, tmp_path: Path
    ) -> None:
        first = pre_commit(sink, [1, 2], nonce="aaaa")
        pre_commit(sink, [1, 7], nonce="bbbb")

        sink.commit([first])
        for name in sink.open_transactions(JOB):
            sink.abort(name)

        assert sorted(self.visible(tmp_path)) == [1, 2]
        assert list(sink.open_transactions(JOB)) == []

    @pytest.mark.parametrize("pre_committed", [False, True])
    def test_a_killed_writer_leaves_nothing_but_an_open_transaction(
        self, sink: TwoPhaseCommitSink, tmp_path: Path, pre_committed: bool
    ) -> None:
        name = transaction_name(nonce="cccc")
        code = run_python(_WRITER, (sink, name, [1, 2, 3], pre_committed), tmp_path)
        assert code == -signal.SIGKILL

        assert self.visible(tmp_path) == []
        waits = self.outside if pre_committed else self.outside_from_begin
        assert list(sink.open_transactions(JOB)) == ([name] if waits else [])
        sink.abort(name)
        assert list(sink.open_transactions(JOB)) == []

    def test_a_handle_of_something_else_is_an_error(self, sink: TwoPhaseCommitSink, tmp_path: Path) -> None:
        with pytest.raises(TransactionError, match=self.says_foreign):
            sink.commit([b"no handle"])
        with pytest.raises(TransactionError, match=self.says_foreign):
            sink.name_of(b"\x93\x01\x02\x03")


class ExternalSinkContract(SinkContract):
    """The suite for a sink that writes to a system outside, where transactions wait for their commit. One that keeps
    its rows in the task until ``pre_commit`` says ``outside_from_begin = False``.
    """

    outside = outside_from_begin = True

    def test_open_transactions_are_listed_and_aborted_one_by_one(
        self, sink: TwoPhaseCommitSink, tmp_path: Path
    ) -> None:
        kept = pre_commit(sink, [1], epoch=1, subtask=3, attempt=2)
        pre_commit(sink, [2], epoch=12, subtask=3, attempt=2)
        pre_commit(sink, [3], job="another job")
        names = [transaction_name(epoch=epoch, subtask=3, attempt=2) for epoch in (1, 12)]
        assert sorted(sink.open_transactions(JOB)) == names

        sink.abort(names[1])
        sink.abort(names[1])

        assert list(sink.open_transactions(JOB)) == names[:1]
        assert len(list(sink.open_transactions("another job"))) == 1
        sink.commit([kept])
        assert self.visible(tmp_path) == [1]

    def test_a_lost_transaction_is_noticed(self, sink: TwoPhaseCommitSink, tmp_path: Path) -> None:
        handle = pre_commit(sink, [1])
        sink.abort(transaction_name())

        for commit in (sink.commit, sink.recover_and_commit):
            with pytest.raises(TransactionError, match=self.says_lost):
                commit([handle])
