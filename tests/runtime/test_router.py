"""Rows become envelopes and rows again; barriers and statuses ride with them."""

from __future__ import annotations

from operator import itemgetter

import pytest

from holdfast.errors import ProgramError, RowTypeError
from holdfast.runtime.batch import Batch
from holdfast.runtime.envelope import (
    COORDINATOR_EDGE,
    ChannelStatus,
    Envelope,
    Header,
    pack,
    unpack_header,
)
from holdfast.runtime.partitioners import Broadcast, Forward, Global, KeyGroupHash, Rebalance
from holdfast.runtime.plan import TaskOptions
from holdfast.runtime.router import Outbox
from holdfast.types.arrow import row_writer
from holdfast.types.row import Row, RowKind
from holdfast.types.typeinfo import Types
from tests.runtime.wires import BARRIER, STATUS, Wire, all_rows, edge_of, headers

LONG = Types.LONG()


def test_rows_are_split_by_target_in_one_envelope_each() -> None:
    wire = Wire(edge_of(Rebalance(), LONG, 3))
    sent = wire.epoch(Batch([0, 1, 2, 3]), Batch([4, 5]))
    assert [all_rows(wire.read(target, sent)) for target in range(3)] == [[2, 5], [0, 3], [1, 4]]
    assert sorted((e.slot, e.number, e.sequence) for e in sent) == [(0, 0, 0), (1, 0, 0), (2, 0, 0)]
    assert {(e.edge, e.channel, e.sender) for e in sent} == {(3, 1, 1)}


@pytest.mark.parametrize(
    ("partitioner", "receivers"), [(Forward(), [1]), (Global(), [0]), (Broadcast(), [0, 1, 2])], ids=lambda p: str(p)
)
def test_whole_batches_go_where_the_partitioner_says(partitioner: Forward, receivers: list[int]) -> None:
    wire = Wire(edge_of(partitioner, LONG, 3))
    sent = wire.epoch(Batch([7, 8, 9]))
    assert [t for t in range(3) if all_rows(wire.read(t, sent)) == [7, 8, 9]] == receivers
    assert sum(h.rows for t in range(3) for h in headers(sent, t)) == 3 * len(receivers)


def test_an_arrow_batch_goes_out_without_becoming_rows() -> None:
    wire = Wire(edge_of(Global(), LONG, 1))
    batch = Batch.of_arrow(row_writer(LONG)([1, 2]), reader=lambda _: pytest.fail("the rows were read"))
    assert all_rows(wire.read(0, wire.epoch(batch))) == [1, 2]


def test_large_batches_are_cut_and_keep_their_order() -> None:
    wire = Wire(edge_of(Global(), Types.STRING(), 1), TaskOptions(envelope_bytes=10_000))
    rows = [f"{i:06d}" * 20 for i in range(1000)]
    sent = wire.epoch(Batch(rows))
    assert len(sent) > 5
    assert all(len(memoryview(e.payload)) <= 2 * 10_000 + 500 for e in sent)
    assert all_rows(wire.read(0, sent)) == rows
    assert [e.number for e in sorted(sent, key=lambda e: e.sequence)] == list(range(len(sent)))


def test_envelopes_leave_before_the_epoch_ends_once_they_are_large_enough() -> None:
    outbox = Outbox(1)
    wire = Wire(edge_of(Global(), Types.STRING(), 1), TaskOptions(envelope_bytes=1000))
    wire.router.begin_epoch(outbox)
    for _ in range(3):
        wire.router.collect(Batch(["x" * 1200]))
    assert len(outbox.take()) == 2  # the last one waits for the barrier


def test_small_shares_of_large_batches_are_gathered_into_one_envelope() -> None:
    wire = Wire(edge_of(Rebalance(), Types.STRING(), 64), TaskOptions(envelope_bytes=100_000))
    batches = [Batch([f"{i:0100d}" for i in range(1024)]) for _ in range(20)]
    sent = wire.epoch(*batches)
    assert len([e for e in sent if e.slot == 0]) == 1
    assert len(all_rows(wire.read(0, sent))) == 20 * 16


def test_a_row_beyond_the_envelope_size_travels_alone() -> None:
    wire = Wire(edge_of(Global(), Types.STRING(), 1), TaskOptions(envelope_bytes=1000, max_row_bytes=50_000))
    rows = ["a", "x" * 30_000, "b"]
    assert all_rows(wire.read(0, wire.epoch(Batch(rows)))) == rows


def test_one_huge_row_is_refused_with_its_size_the_limit_and_the_option() -> None:
    wire = Wire(edge_of(Global(), Types.STRING(), 1), TaskOptions(envelope_bytes=1000, max_row_bytes=50_000))
    with pytest.raises(
        ProgramError, match=r"operator 'Source', subtask 1/2: one row takes 60\d\d\d bytes; the limit is 50000"
    ) as error:
        wire.epoch(Batch(["a", "x" * 60_000]))
    assert "holdfast.row.max-bytes" in str(error.value)


def test_a_row_of_another_type_is_refused_with_the_row() -> None:
    wire = Wire(edge_of(Global(), LONG, 1))
    with pytest.raises(RowTypeError, match="'three'"):
        wire.epoch(Batch([1, 2, "three"]))


def test_the_barrier_rides_in_each_links_last_envelope_with_its_count() -> None:
    wire = Wire(edge_of(KeyGroupHash(LONG, 4, selector=lambda v: v), LONG, 2), TaskOptions(envelope_bytes=200))
    sent = wire.epoch(*(Batch(list(range(20 * i, 20 * i + 20))) for i in range(6)))
    for slot in range(2):
        link = sorted((e for e in sent if e.slot == slot), key=lambda e: e.sequence)
        assert [e.sequence for e in link] == list(range(len(link)))
        barriers = [unpack_header(e.payload)[0].barrier for e in link]
        assert barriers[:-1] == [None] * (len(link) - 1)
        last = barriers[-1]
        assert last is not None
        assert (last.attempt, last.epoch, last.checkpoint_id, last.nonce, last.count) == (1, 4, 9, "nonce", len(link))


def test_a_link_through_which_nothing_goes_has_no_barrier() -> None:
    wire = Wire(edge_of(Forward(), LONG, 2))
    assert {e.slot for e in wire.epoch(Batch([1]), status=STATUS)} == {0, 1}, "both receivers learn the status"
    assert {e.slot for e in wire.epoch(Batch([1]), status=STATUS)} == {1}


def test_messages_to_the_coordinator_and_of_skipped_levels_are_numbered_on_the_link() -> None:
    outbox = Outbox(sender=2)
    outbox.pass_on(Envelope(1, 7, 5, 3, 99, 99, pack(Header(rows=0))))
    outbox.to_coordinator(1, pack(Header(), b"ack"))
    sent = [e for e in outbox.close(BARRIER) if e.slot == 1]
    assert [(e.edge, e.channel, e.number, e.sender, e.sequence) for e in sent] == [
        (7, 5, 3, 2, 0),
        (COORDINATOR_EDGE, 2, 0, 2, 1),
    ]
    header, body = unpack_header(sent[1].payload)
    assert header.barrier is not None and header.barrier.count == 2
    assert bytes(body) == b"ack"


def test_a_status_goes_with_the_last_rows_or_alone_where_it_changed() -> None:
    wire = Wire(edge_of(Forward(), LONG, 2))
    first = wire.epoch(Batch([1]))
    assert [h.status for h in headers(first, 1)] == [STATUS]
    assert [(h.status, h.rows) for h in headers(first, 0)] == [(STATUS, 0)]
    assert wire.epoch() == []
    moved = ChannelStatus(200, False, False)
    third = wire.epoch(status=moved)
    assert [h.status for slot in (0, 1) for h in headers(third, slot)] == [moved, moved]


def test_what_targets_know_is_remembered_in_another_process() -> None:
    edge = edge_of(Forward(), LONG, 2)
    before = Wire(edge)
    before.epoch()
    after = Wire(edge)
    after.router.load(before.router.dump())
    assert after.epoch() == []


def test_a_status_after_many_envelopes_is_in_the_last_only() -> None:
    wire = Wire(edge_of(Global(), Types.STRING(), 1), TaskOptions(envelope_bytes=500))
    statuses = [h.status for h in headers(wire.epoch(Batch(["x" * 100] * 50)), 0)]
    assert len(statuses) > 3
    assert statuses[-1] == STATUS
    assert statuses[:-1] == [None] * (len(statuses) - 1)


ROW = Types.ROW_NAMED(["k", "v"], [Types.LONG(), Types.STRING()])


@pytest.mark.parametrize(
    "partitioner", [Global(), KeyGroupHash(LONG, 8, ("k",)), KeyGroupHash(LONG, 8, (), itemgetter(0))]
)
@pytest.mark.parametrize("event_time", [False, True])
def test_batches_with_kinds_of_rows_and_without_follow_each_other(partitioner: Global, event_time: bool) -> None:
    wire = Wire(edge_of(partitioner, ROW, 1, event_time=event_time))
    plain, deleted = Row(1, "a"), Row.of_kind(RowKind.DELETE, 2, "b")
    batches = [[plain], [deleted, plain], [deleted], [plain, plain], [plain]]
    times = [([5] * len(rows), [0] * len(rows)) if event_time else (None, None) for rows in batches]
    sent = wire.epoch(*(Batch(rows, *given) for rows, given in zip(batches, times, strict=True)))
    received = wire.read(0, sent)
    kinds = [(row.k, str(row.get_row_kind())) for row in all_rows(received)]
    assert kinds == [(row[0], str(row.get_row_kind())) for rows in batches for row in rows]
    # They are passed on as they came, and may be joined with each other.
    assert [str(row.get_row_kind()) for row in all_rows(wire.read(0, wire.epoch(*received)))] == [k for _, k in kinds]
    if received[0].keys is not None:
        joined = all_rows(list(Batch.joined(wire.read(0, sent))))
        assert [str(row.get_row_kind()) for row in joined] == [kind for _, kind in kinds]
