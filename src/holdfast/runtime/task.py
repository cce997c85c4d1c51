"""One Spark task of one epoch: partition ``slot`` of a level. Pure Python; the Spark side hands it envelopes and takes envelopes.

The order below is what exactly-once rests on: outputs and barriers are handed out first, then snapshots are written, then the local stores commit
under the execution's nonce, and only then is the acknowledgement sent. A process that dies anywhere leaves the stamp of the epoch before.
"""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Callable, Generator, Iterator

import msgspec

from holdfast.errors import CheckpointError, StorageError
from holdfast.failpoints import failpoint
from holdfast.runtime.aligner import Aligner
from holdfast.runtime.chain import Chain
from holdfast.runtime.envelope import COORDINATOR_EDGE, CONTROL_EDGE, Barrier, Envelope, Header, pack, unpack_header
from holdfast.runtime.environment import wall_clock
from holdfast.runtime.epoch import Acknowledgement, EpochSpec, RestoredJob, SinkHandle
from holdfast.runtime.live_task import LiveTask
from holdfast.runtime.plan import JobPlan
from holdfast.runtime.router import Outbox
from holdfast.state.handles import SubtaskSnapshot

_ack_encoder = msgspec.msgpack.Encoder()


class TaskRun:
    """One execution. ``run`` yields envelopes; whoever drives it must exhaust it."""

    def __init__(self, plan: JobPlan, level: int, slot: int, spec: EpochSpec, load_restored: Callable[[], RestoredJob | None]) -> None:
        self._plan = plan
        self._level = level
        self._slot = slot
        self._spec = spec
        self._load_restored = load_restored
        self._nonce = uuid.uuid4().hex[:16]
        self._outbox = Outbox(slot, plan.slots)
        self._targets = {edge: chain_id for chain_id, c in enumerate(plan.chains) if c.level == level for edge in c.inputs}

    def run(self, incoming: Iterator[Envelope], senders: list[int]) -> Iterator[Envelope]:
        """Everything this subtask sends in this epoch. ``senders`` are the tasks of the level before (none for level 0)."""
        facts = {"epoch": self._spec.epoch, "level": self._level, "slot": self._slot, "attempt": self._spec.attempt}
        failpoint("task.start", **facts)
        task = LiveTask.obtain(self._plan, self._level, self._slot, self._spec, self._load_restored)
        failpoint("task.opened", **facts)
        try:
            for chain in task.chains:
                chain.begin_epoch(self._spec.epoch, self._nonce, self._outbox)
                chain.notify(self._spec.notifications)
            self._fire_timers(task.chains)
            consumed = yield from self._consume(task.chains, incoming, senders)
            handles = yield from self._close_outputs(task.chains)
            failpoint("task.outputs-sent", **facts)
            snapshots, snapshot_failure = self._snapshot(task)
            failpoint("task.before-commit", **facts)
            task.commit(self._spec, self._nonce)
            failpoint("task.after-commit", **facts)
            acknowledgement = self._acknowledge(task, consumed, handles, snapshots, snapshot_failure)
        except BaseException:
            task.abandon()
            raise
        yield from acknowledgement

    # -- input -----------------------------------------------------------------------------------------------------------------

    def _consume(
        self, chains: list[Chain], incoming: Iterator[Envelope], senders: list[int]
    ) -> Generator[Envelope, None, dict[int, str]]:
        """Process everything that comes in; returns the nonce of each sender."""
        if self._level == 0:
            # A task that leaves input unread costs Spark the worker process.
            for _ in incoming:
                pass
            yield from self._read_sources(chains)
            return {}
        aligner: Aligner[Envelope] = Aligner(senders)
        by_edge = {edge: chain for chain in chains for edge in chain.spec.inputs}
        for envelope in incoming:
            header, body = unpack_header(envelope.payload)
            aligner.accept(envelope.sender, envelope.sequence, envelope)
            if header.barrier is not None:
                aligner.barrier(envelope.sender, header.barrier)
            if envelope.edge in by_edge:
                by_edge[envelope.edge].receive(envelope.edge, envelope.channel, header, body)
                self._fire_timers(chains)
            elif envelope.edge != CONTROL_EDGE:
                self._pass_on(envelope, header, body)
            yield from self._outbox.take()
        checkpoint = self._spec.checkpoint
        nonces = aligner.verify(self._spec.attempt, self._spec.epoch, checkpoint.checkpoint_id if checkpoint else None)
        for chain in chains:
            chain.end_input()
        yield from self._outbox.take()
        return nonces

    def _read_sources(self, chains: list[Chain]) -> Iterator[Envelope]:
        if not self._spec.read_sources:
            return
        for chain in chains:
            for _ in chain.read_source(self._spec.rows_per_subtask, self._spec.max_millis):
                self._fire_timers(chains)
                yield from self._outbox.take()
        yield from self._outbox.take()

    def _pass_on(self, envelope: Envelope, header: Header, body: memoryview) -> None:
        """An edge that skips this level, or a message for the coordinator: only the link's barrier is taken off."""
        if header.barrier is not None:
            envelope.payload = pack(msgspec.structs.replace(header, barrier=None), body)
        envelope.slot = self._slot
        self._outbox.pass_on(envelope)

    def _fire_timers(self, chains: list[Chain]) -> None:
        now = wall_clock()
        for chain in chains:
            chain.fire_processing_timers(now)

    # -- output ----------------------------------------------------------------------------------------------------------------

    def _close_outputs(self, chains: list[Chain]) -> Generator[Envelope, None, list[SinkHandle]]:
        """Last rows, pre-commits, barriers; returns the sinks' handles."""
        self._fire_timers(chains)
        checkpoint = self._spec.checkpoint
        handles: list[SinkHandle] = []
        for chain in chains:
            if checkpoint is not None:
                chain.prepare_snapshot(checkpoint.checkpoint_id)
            handles += chain.end_epoch()
        yield from self._outbox.take()
        return handles

    def _snapshot(self, task: LiveTask) -> tuple[list[SubtaskSnapshot], str | None]:
        """What the subtasks wrote, or why they could not: a full disk aborts the checkpoint, not the job."""
        checkpoint, writer = self._spec.checkpoint, self._spec.writer
        if checkpoint is None or writer is None:
            return [], None
        for chain in task.chains:
            chain.snapshot_state(checkpoint.checkpoint_id, checkpoint.timestamp)
        try:
            return task.snapshot(checkpoint, writer, self._nonce), None
        except (StorageError, CheckpointError, OSError) as error:
            return [], f"{type(error).__name__}: {error}"

    def _acknowledge(
        self,
        task: LiveTask,
        consumed: dict[int, str],
        handles: list[SinkHandle],
        snapshots: list[SubtaskSnapshot],
        snapshot_failure: str | None,
    ) -> list[Envelope]:
        chains = task.chains
        timers = [t for c in chains if (t := c.next_processing_timer()) is not None]
        acknowledgement = Acknowledgement(
            group=0,
            level=self._level,
            slot=self._slot,
            epoch=self._spec.epoch,
            nonce=self._nonce,
            consumed=consumed,
            progress=tuple(p for c in chains for p in c.progress()),
            transactions=tuple(handles),
            snapshots=tuple(snapshots),
            snapshot_failure=snapshot_failure,
            next_timer=min(timers, default=None),
            ended=all(c.finished for c in chains),
            restored_bytes=task.restored_bytes,
            warnings=tuple(task.take_warnings()),
            host=socket.gethostname(),
            executor=f"{socket.gethostname()}/{os.getppid()}",
        )
        if self._spec.close:
            task.dispose()
        self._outbox.to_coordinator(self._slot, pack(Header(), _ack_encoder.encode(acknowledgement)))
        return self._outbox.close(self._barrier())

    def _barrier(self) -> Barrier:
        spec, checkpoint = self._spec, self._spec.checkpoint
        return Barrier(
            spec.attempt,
            spec.epoch,
            checkpoint.checkpoint_id if checkpoint else None,
            checkpoint.checkpoint_type if checkpoint else None,
            self._nonce,
            0,
        )


_ack_decoder = msgspec.msgpack.Decoder(Acknowledgement)


def read_acknowledgement(payload: bytes) -> Acknowledgement:
    """What a task told the coordinator."""
    _, body = unpack_header(payload)
    return _ack_decoder.decode(body)
