"""Snapshots from a path: whoever wrote one may be anybody, and to unpickle is to run what is in it.

A job's own checkpoints, which it goes on from after a failure, are none of these.
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.errors import PickledStateError
from holdfast.runtime.sink import TwoPhaseCommitSink
from holdfast.state.handles import OperatorRecord
from holdfast.state.pickled_states import PickledState, pickled_states
from holdfast.state.snapshot_io import SnapshotReader

ALLOW_PICKLE_OPTION = "holdfast.state.allow-pickle"


def pickled_in(
    record: OperatorRecord, reader: SnapshotReader, sink: TwoPhaseCommitSink | None
) -> list[PickledState]:
    """All that an operator would have to unpickle of what is restored. ``sink`` is the operator's, if it is one."""
    found = pickled_states(record, reader)
    handles = [handle for snapshot in record.subtasks for handle in snapshot.transactions]
    pickled = 0 if sink is None else sum(map(sink.unpickles, handles))
    if pickled:
        found.append(PickledState(record.name, record.uid, f"{pickled} pre-committed", "transactions"))
    return found


def refuse_pickled(path: str, found: Iterable[PickledState]) -> None:
    """PickledStateError, naming operators and states, where there are any that the job would restore from ``path``."""
    states = list(found)
    if states:
        raise PickledStateError(refusal(path, states))


def refusal(path: str, found: Iterable[PickledState]) -> str:
    states = "; ".join(one.describe() for one in found)
    return (
        f"the snapshot {path} has pickled state, and to unpickle it runs whatever code is in it: {states}. If you "
        f"trust all who could write to it, start with --allow-pickle ({ALLOW_PICKLE_OPTION}: true). What has a "
        "declared type is stored without pickle from then on."
    )
