"""What every two-phase-commit sink must do.

A sink's tests subclass SinkContract, or ExternalSinkContract, and say how to make it and what a reader sees.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import TransactionError
from holdfast.runtime.batch import Batch
from holdfast.runtime.sink import TransactionName, TwoPhaseCommitSink

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
    return TransactionName(job, OPERATOR, subtask, attempt, epoch, nonce)


def pre_commit(sink: TwoPhaseCommitSink, values: list[Any], **name: Any) -> bytes:
    transaction = sink.begin(transaction_name(**name))
    sink.write(transaction, Batch(values))
    handle = sink.pre_commit(transaction)
    assert handle is not None
    return handle


def run_python(program: str, argument: Any, directory: Path, **environment: str) -> int:
    """Run a program in a process of its own with a pickled argument; the exit code, negative for a signal."""
    pickled = directory / "argument.pickle"
    pickled.write_bytes(pickle.dumps(argument))
    return subprocess.run(
        [sys.executable, "-c", program, str(pickled)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), **environment},
        check=False,
    ).returncode


class SinkContract(ABC):
    """For every sink. Values are ints."""

    #: Whether transactions leave something outside of their handle.
    outside = False

    @pytest.fixture
    @abstractmethod
    def sink(self, tmp_path: Path) -> TwoPhaseCommitSink: ...

    @abstractmethod
    def visible(self, tmp_path: Path) -> list[int]:
        """What a reader has seen so far, in any order."""

    def test_nothing_is_seen_before_the_commit_and_all_of_it_after(self, sink, tmp_path):
        handles = [pre_commit(sink, [1, 2], subtask=0), pre_commit(sink, [3], subtask=1)]
        assert self.visible(tmp_path) == []

        sink.commit(handles)

        assert sorted(self.visible(tmp_path)) == [1, 2, 3]
        assert list(sink.open_transactions(JOB)) == []

    def test_committing_again_changes_nothing(self, sink, tmp_path):
        handles = [pre_commit(sink, [1], epoch=1), pre_commit(sink, [2], epoch=2)]
        sink.commit(handles[:1])
        sink.commit(handles)
        sink.recover_and_commit(handles)
        sink.commit(handles)

        assert sorted(self.visible(tmp_path)) == [1, 2]

    def test_a_handle_is_enough_for_another_copy_of_the_sink(self, sink, tmp_path):
        handle = pre_commit(sink, [1, 2])
        copy = pickle.loads(pickle.dumps(sink))

        copy.recover_and_commit([handle])

        assert sorted(self.visible(tmp_path)) == [1, 2]
        assert copy.name_of(handle) == transaction_name()

    def test_a_transaction_without_rows_has_no_handle(self, sink, tmp_path):
        transaction = sink.begin(transaction_name())
        sink.write(transaction, Batch([]))

        assert sink.pre_commit(transaction) is None
        assert list(sink.open_transactions(JOB)) == []

    def test_several_batches_are_one_transaction(self, sink, tmp_path):
        transaction = sink.begin(transaction_name())
        for start in range(0, 100, 10):
            sink.write(transaction, Batch(list(range(start, start + 10))))
        sink.commit([sink.pre_commit(transaction)])

        assert sorted(self.visible(tmp_path)) == list(range(100))

    def test_what_was_discarded_is_gone(self, sink, tmp_path):
        transaction = sink.begin(transaction_name())
        sink.write(transaction, Batch([1]))
        sink.discard(transaction)

        assert list(sink.open_transactions(JOB)) == []
        assert self.visible(tmp_path) == []

    def test_of_two_executions_of_an_epoch_only_the_committed_one_is_seen(self, sink, tmp_path):
        first = pre_commit(sink, [1, 2], nonce="aaaa")
        pre_commit(sink, [1, 7], nonce="bbbb")

        sink.commit([first])
        for name in sink.open_transactions(JOB):
            sink.abort(name)

        assert sorted(self.visible(tmp_path)) == [1, 2]
        assert list(sink.open_transactions(JOB)) == []

    @pytest.mark.parametrize("pre_committed", [False, True])
    def test_a_killed_writer_leaves_nothing_but_an_open_transaction(self, sink, tmp_path, pre_committed):
        name = transaction_name(nonce="cccc")
        code = run_python(_WRITER, (sink, name, [1, 2, 3], pre_committed), tmp_path)
        assert code == -signal.SIGKILL

        assert self.visible(tmp_path) == []
        assert list(sink.open_transactions(JOB)) == ([name] if self.outside else [])
        sink.abort(name)
        assert list(sink.open_transactions(JOB)) == []

    def test_a_handle_of_something_else_is_an_error(self, sink, tmp_path):
        with pytest.raises(TransactionError, match="sink that wrote the checkpoint"):
            sink.commit([b"no handle"])
        with pytest.raises(TransactionError, match="sink that wrote the checkpoint"):
            sink.name_of(b"\x93\x01\x02\x03")


class ExternalSinkContract(SinkContract):
    """For sinks that write to a system outside, where transactions wait for their commit."""

    outside = True

    def test_open_transactions_are_listed_and_aborted_one_by_one(self, sink, tmp_path):
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

    def test_a_lost_transaction_is_noticed(self, sink, tmp_path):
        handle = pre_commit(sink, [1])
        sink.abort(transaction_name())

        for commit in (sink.commit, sink.recover_and_commit):
            with pytest.raises(TransactionError, match="lost"):
                commit([handle])


def commit_in_process(sink: TwoPhaseCommitSink, handles: list[bytes], directory: Path, **environment: str) -> int:
    return run_python(_COMMITTER, (sink, handles), directory, **environment)
