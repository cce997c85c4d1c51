from __future__ import annotations

from holdfast.checkpoint.completed import CompletedCheckpoint
from holdfast.checkpoint.pending import AcknowledgeResult, PendingCheckpoint
from holdfast.state.handles import CheckpointRequest, SnapshotType
from tests.checkpoint.samples import handle, keyed, keyed_file, metadata, record, snapshot

REQUEST = CheckpointRequest(checkpoint_id=5, checkpoint_type=SnapshotType.CHECKPOINT, timestamp=0, attempt=1, epoch=9)


def pending(base: CompletedCheckpoint | None = None) -> PendingCheckpoint:
    return PendingCheckpoint(REQUEST, frozenset({("a", 0), ("a", 1), ("b", 0)}), base, deadline=100)


def test_every_expected_subtask_must_acknowledge() -> None:
    checkpoint = pending()
    assert checkpoint.missing() == [("a", 0), ("a", 1), ("b", 0)]
    for operator, subtask in checkpoint.missing():
        assert not checkpoint.fully_acknowledged
        assert checkpoint.acknowledge(snapshot(subtask, operator)) is AcknowledgeResult.SUCCESS
    assert checkpoint.fully_acknowledged
    assert checkpoint.missing() == []


def test_a_second_acknowledgement_changes_nothing() -> None:
    checkpoint = pending()
    first = snapshot(0, "a", bytes_written=1)
    checkpoint.acknowledge(first)
    assert checkpoint.acknowledge(snapshot(0, "a", bytes_written=2)) is AcknowledgeResult.DUPLICATE
    assert checkpoint.snapshot_of("a", 0) is first


def test_who_is_not_expected_is_unknown() -> None:
    checkpoint = pending()
    assert checkpoint.acknowledge(snapshot(2, "a")) is AcknowledgeResult.UNKNOWN
    assert checkpoint.acknowledge(snapshot(0, "c")) is AcknowledgeResult.UNKNOWN
    assert len(checkpoint.missing()) == 3


def test_nothing_counts_after_it_was_discarded() -> None:
    checkpoint = pending()
    for operator, subtask in checkpoint.missing():
        checkpoint.acknowledge(snapshot(subtask, operator))
    checkpoint.discard()
    assert checkpoint.acknowledge(snapshot(0, "a")) is AcknowledgeResult.DISCARDED
    assert not checkpoint.fully_acknowledged


def test_it_needs_what_was_written_and_the_files_of_its_base() -> None:
    base = CompletedCheckpoint(metadata(4, [record(subtasks=[snapshot(keyed=keyed(keyed_file("shared/1-4-a")))])]), "x")
    checkpoint = pending(base)
    checkpoint.acknowledge(snapshot(0, "a", operator_state=handle("chk-5/1-list")))
    checkpoint.acknowledge(snapshot(1, "a", operator_state=handle(inline=b"few")))
    assert checkpoint.written_files() == {"chk-5/1-list"}
    assert checkpoint.needed_files() == {"chk-5/1-list", "shared/1-4-a"}
