"""One Spark task of one epoch: partition ``slot`` of a level. Pure Python; the Spark side hands it envelopes and takes
envelopes.

The order below is what exactly-once rests on: outputs are handed out first, then snapshots are pinned, then the local
stores commit under the execution's nonce, and only then are the acknowledgement and the barriers sent. A process that
dies before the commit leaves the stamp of the epoch before; behind it, a commit that nobody accepts is undone.
"""

from __future__ import annotations

import errno
import logging
import os
import socket
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import replace

import msgspec
import pyarrow as pa

from holdfast.errors import EpochError, HoldfastError
from holdfast.failpoints import failpoint
from holdfast.runtime.aligner import Aligner
from holdfast.runtime.chain import OperatorChain
from holdfast.runtime.envelope import CONTROL_EDGE, Envelope, Header, pack, unpack_header
from holdfast.runtime.epoch import Acknowledgement, Consumed, EpochSpec, RestoredJob, SinkHandle
from holdfast.runtime.failure_report import report_of_raised, with_report
from holdfast.runtime.failures import PassedOn
from holdfast.runtime.live_task import LiveTask
from holdfast.runtime.local_files import local_root
from holdfast.runtime.plan import JobPlan
from holdfast.runtime.router import Outbox
from holdfast.runtime.source import ReadLimit
from holdfast.runtime.upload import STORING_ERRORS, Upload, UploadResult
from holdfast.state.handles import CheckpointRequest
from holdfast.types.clock import wall_clock

_log = logging.getLogger(__name__)
_ack_encoder = msgspec.msgpack.Encoder()


class TaskRun:
    """One execution. ``run`` drives it from the first envelope to the last; whoever drives it must exhaust it.

    ``start``, ``receive`` or ``read_sources``, ``end_input``, ``close_outputs`` and ``commit`` are its steps in their
    order, for a driver that hands envelopes in one by one. After an error in any of them comes ``abandon``.
    """

    def __init__(
        self,
        plan: JobPlan,
        level: int,
        slot: int,
        spec: EpochSpec,
        load_restored: Callable[[], RestoredJob | None],
        clock: Callable[[], int] = wall_clock,
        outbox: Outbox | None = None,
    ) -> None:
        self._plan = plan
        self._level = level
        self._slot = slot
        #: What the epoch asks for. A driver that goes step by step may still add a checkpoint before ``end_input``.
        self.spec = spec
        self._load_restored = load_restored
        self._clock = clock
        self._nonce = uuid.uuid4().hex[:16]
        self._outbox = outbox or Outbox(slot)
        self._facts = {"epoch": spec.epoch, "level": level, "slot": slot, "attempt": spec.attempt}
        self._task: LiveTask | None = None
        self._upload: Upload | None = None
        self._consumed: dict[int, Consumed] = {}
        self._handles: list[SinkHandle] = []
        #: When the first barrier came, or the sources of the job began, and when the last did.
        self._first_barrier: int | None = None
        self._last_barrier = 0
        #: Of a snapshot that somebody asked for, as the barriers brought it.
        self._trigger_id = ""

    @property
    def chains(self) -> list[OperatorChain]:
        """The chains of the started task."""
        assert self._task is not None
        return self._task.chains

    def run(
        self, incoming: Iterator[Envelope], senders: AbstractSet[int], queried: Iterable[pa.RecordBatch] = ()
    ) -> Iterator[Envelope]:
        """Everything this subtask sends in this epoch. ``senders`` are those that it reads: see ``senders_of``.
        ``queried`` are rows that come out of the level's query; the first of ``incoming`` is asked for behind them.
        """
        try:
            self.start(senders)
            if self._level == 0:
                # A task that leaves input unread costs Spark the worker process.
                for _ in incoming:
                    pass
                yield from self.read_sources()
            else:
                for rows in queried:
                    self.receive_queried(rows)
                    yield from self._outbox.take()
                for envelope in incoming:
                    self.receive(envelope)
                    yield from self._outbox.take()
            self.end_input()
            self.close_outputs()
            yield from self._outbox.take()
            rest = self.commit()
        except BaseException as error:
            self.abandon()
            if isinstance(error, (HoldfastError, PassedOn)) or not isinstance(error, Exception):
                raise
            raise self._failure(error) from error
        yield from rest

    def _failure(self, error: Exception) -> EpochError:
        """The error to raise for what is none of ours, nor of a function's: of the host, or of a source."""
        full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
        root = local_root(self._plan.options.local_dir)
        advice = f". The disk of the local directory {root} is full: free space, or choose another one" if full else ""
        failure = EpochError(f"{type(error).__name__}: {error}{advice}")
        failure.__cause__ = error
        failure.at(task=self._plan.describe_task(self._level, self._slot))
        with_report(failure, report_of_raised(failure, error))
        return failure

    def start(self, senders: AbstractSet[int]) -> None:
        """Take the task up at the accepted stamp, tell it what became of checkpoints, fire what is overdue."""
        failpoint("task.start", **self._facts)
        self._task = LiveTask.obtain(self._plan, self._level, self._slot, self.spec, self._load_restored, self._clock)
        failpoint("task.opened", **self._facts)
        for chain in self.chains:
            chain.begin_epoch(self.spec.epoch, self._nonce, self._outbox, self.spec.drain)
            chain.notify(self.spec.notifications)
        self._aligner = Aligner(senders)
        self._by_edge = {edge: chain for chain in self.chains for edge in chain.spec.inputs}
        self.fire_timers()

    # -- input

    def receive(self, envelope: Envelope) -> None:
        """Process one message of the level before, or pass it on."""
        header, body = unpack_header(envelope.payload)
        self._aligner.accept(envelope.sender, envelope.sequence)
        if header.barrier is not None:
            self._aligner.barrier(envelope.sender, header.barrier)
            self._note_barrier(header.barrier.trigger_id)
        if envelope.edge in self._by_edge:
            self._by_edge[envelope.edge].receive(envelope.edge, envelope.channel, header, body)
            self.fire_timers()
        elif envelope.edge != CONTROL_EDGE:
            self._pass_on(envelope, header, body)

    def receive_queried(self, rows: pa.RecordBatch) -> None:
        """Process rows that come out of the level's query."""
        next(chain for chain in self.chains if chain.spec.query is not None).receive_queried(rows)
        self.fire_timers()

    def end_input(self) -> None:
        """Everything is there, or the epoch fails."""
        checkpoint = self.spec.checkpoint
        if self._first_barrier is None:
            # Nobody sent anything, or nobody is there to send: the epoch itself brings the barrier.
            self._note_barrier(checkpoint.trigger_id if checkpoint is not None else "")
        self._consumed = self._aligner.verify(
            self.spec.attempt, self.spec.epoch, checkpoint.checkpoint_id if checkpoint else None
        )
        self._log_barrier(checkpoint)
        for chain in self.chains:
            chain.end_input(self.spec.data_frames_read)

    def _note_barrier(self, trigger_id: str) -> None:
        self._trigger_id = trigger_id
        self._last_barrier = self._clock()
        if self._first_barrier is None:
            self._first_barrier = self._last_barrier

    def _log_barrier(self, checkpoint: CheckpointRequest | None) -> None:
        """Only of a snapshot that somebody asked for: of others there are too many."""
        if checkpoint is None or not self._trigger_id:
            return
        for operator in (each for chain in self.chains for each in chain.spec.operators):
            _log.info(
                "Trigger %s: the barrier of snapshot %d has come to '%s' (%d/%d) in epoch %d",
                self._trigger_id,
                checkpoint.checkpoint_id,
                operator.name,
                self._slot + 1,
                operator.parallelism,
                self.spec.epoch,
            )

    def fire_timers(self) -> None:
        """Fire the processing-time timers that are due. Not where functions are only to be closed: behind the savepoint
        that the job was stopped with nothing happens in them any more, and those timers are in it.
        """
        if self.spec.close:
            return
        now = self._clock()
        for chain in self.chains:
            chain.fire_processing_timers(now)

    def read_sources(self) -> Iterator[Envelope]:
        """Let the sources of level 0 give their rows of this epoch, and hand out what has become large enough."""
        for chain in self.chains if self.spec.drain else ():
            chain.drain_source()
        for chain in self.chains if self.spec.read_sources else ():
            limit = ReadLimit(self.spec.rows_per_subtask, time.monotonic() + self.spec.max_millis / 1000)
            for _ in chain.read_source(limit, self.spec.watermark_bounds):
                self.fire_timers()
                yield from self._outbox.take()
        yield from self._outbox.take()

    def _pass_on(self, envelope: Envelope, header: Header, body: memoryview) -> None:
        """An edge that skips this level, or a message for the coordinator: only the link's barrier is taken off."""
        if header.barrier is not None:
            envelope.payload = pack(msgspec.structs.replace(header, barrier=None), body)
        envelope.slot = self._slot
        self._outbox.pass_on(envelope)

    # -- output

    def close_outputs(self) -> None:
        """Last rows and pre-commits of sinks. What is sent from now on is the acknowledgement and the barriers."""
        self.fire_timers()
        checkpoint = self.spec.checkpoint
        for chain in self.chains:
            chain.end_rows()
            if checkpoint is not None:
                chain.prepare_snapshot(checkpoint.checkpoint_id)
            self._handles += chain.end_epoch(checkpoint.checkpoint_type if checkpoint else None)

    def commit(self) -> list[Envelope]:
        """Pin the snapshot, commit the local stores, and give what is left to send: acknowledgement and barriers."""
        assert self._task is not None
        failpoint("task.outputs-sent", **self._facts)
        stored = self._begin_upload(self._task)
        failpoint("task.before-commit", **self._facts)
        # Timers, and state that gauges show, are read inside the epoch's transaction.
        timers = [t for c in self.chains if (t := c.next_processing_timer()) is not None]
        self._task.sample_gauges()
        self._task.commit(self.spec, self._nonce)
        failpoint("task.after-commit", **self._facts)
        if self._upload is not None:
            stored = self._upload.wait(self.spec.upload_wait_seconds)
        if self.spec.close:
            # Functions may still count in close().
            self._task.dispose()
        acknowledgement = self._acknowledgement(self._task, stored, min(timers, default=None))
        self._outbox.to_coordinator(self._slot, pack(Header(), _ack_encoder.encode(acknowledgement)))
        return self._outbox.close(self.spec.barrier(self._nonce))

    def abandon(self) -> None:
        """The execution failed: nothing of it is kept."""
        if self._upload is not None:
            self._upload.cancel()
        if self._task is not None:
            self._task.abandon()

    def _begin_upload(self, task: LiveTask) -> UploadResult | None:
        """Begin to store what the checkpoint asks for, while the task goes on; the result if there is one already."""
        checkpoint, writer = self.spec.checkpoint, self.spec.writer
        if checkpoint is None or writer is None:
            return UploadResult()
        try:
            prepared = task.prepare_snapshots(checkpoint, self._nonce)
        except STORING_ERRORS as error:
            return UploadResult.failed(error)
        first = self._first_barrier or self._last_barrier
        # The driver's clock may be ahead of this host's.
        delay, alignment = max(0, first - checkpoint.timestamp), self._last_barrier - first
        trigger = self._trigger_id
        prepared = [
            replace(each, start_delay_millis=delay, alignment_millis=alignment, trigger_id=trigger) for each in prepared
        ]
        self._upload = Upload(f"{self._level}-{self._slot}-{self._nonce}", prepared, writer)
        self._upload.start()
        return None

    def _acknowledgement(
        self, task: LiveTask, stored: UploadResult | None, next_timer: int | None
    ) -> Acknowledgement:
        chains = task.chains
        return Acknowledgement(
            group=0,
            level=self._level,
            slot=self._slot,
            epoch=self.spec.epoch,
            nonce=self._nonce,
            consumed=self._consumed,
            sent=self._outbox.sent_with_acknowledgement(self._slot),
            progress=tuple(p for c in chains for p in c.progress()),
            transactions=tuple(self._handles),
            snapshots=stored.snapshots if stored is not None else (),
            snapshot_failure=stored.failure if stored is not None else None,
            late_snapshots=self._upload.name if stored is None and self._upload is not None else None,
            trigger_id=self._trigger_id,
            next_timer=next_timer,
            ended=all(c.finished for c in chains),
            more=any(c.has_more for c in chains),
            restored_bytes=task.restored_bytes,
            migrations=tuple(task.take_migrations()),
            warnings=tuple(task.take_warnings()),
            metrics=tuple(task.metric_reports()),
            host=socket.gethostname(),
            executor=f"{socket.gethostname()}/{os.getppid()}",
        )


_ack_decoder = msgspec.msgpack.Decoder(Acknowledgement)


def read_acknowledgement(payload: bytes) -> Acknowledgement:
    """What a task told the coordinator."""
    _, body = unpack_header(payload)
    return _ack_decoder.decode(body)
