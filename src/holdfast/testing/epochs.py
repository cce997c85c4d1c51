"""The epochs of one subtask: the task of each is begun, driven step by step and committed, as Spark would."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

from holdfast.errors import ProgramError
from holdfast.runtime.async_io.operator import AsyncWaitOperator
from holdfast.runtime.envelope import COORDINATOR_EDGE, ChannelStatus, Envelope, unpack_header
from holdfast.runtime.epoch import Acknowledgement, EpochSpec, Notification, RestoredJob
from holdfast.runtime.operator import Operator
from holdfast.runtime.router import EdgeReader, Outbox
from holdfast.runtime.task import TaskRun, read_acknowledgement
from holdfast.runtime.windowing.operator import WindowOperator
from holdfast.testing.inputs import Input
from holdfast.testing.options import Setup
from holdfast.testing.outputs import Output
from holdfast.testing.program import TestProgram

_SENDER = 0
#: What one read of a source may take; a test ends it by rows.
_READ_MILLIS = 60_000

T = TypeVar("T")


class Epochs:
    """Epoch after epoch of one subtask. The task of an epoch begins with the first call that needs one.

    After an error in any step the task is abandoned, as a failed one is: state and fields are those of the last epoch.
    """

    def __init__(self, program: TestProgram, setup: Setup) -> None:
        self._program = program
        self._setup = setup
        restored = setup.snapshot
        self.attempt = 1 if restored is None else restored.attempt + 1
        #: The number of the last epoch that was committed.
        self.number = self._restore_epoch = 0 if restored is None else restored.epoch
        self.durable_epoch = -1 if restored is None else restored.epoch
        self.acknowledgement: Acknowledgement | None = None
        self._nonce: str | None = None
        self._run: TaskRun | None = None
        self._notifications: list[Notification] = []
        where = f"the input of {program.operator.describe(setup.subtask)}"
        self.inputs = [Input(edge, setup.subtask, where, program.plan.options) for edge in program.inputs]
        self.outputs = {tag: Output(edge) for tag, edge in program.outputs.items()}

    @property
    def running(self) -> bool:
        """Whether a task has begun and not ended."""
        return self._run is not None

    @property
    def begun(self) -> bool:
        """Whether the function was opened in this attempt, and not yet closed."""
        return self.running or self._nonce is not None

    def notify(self, notification: Notification) -> None:
        """The next task is told."""
        self._notifications.append(notification)

    def head(self) -> Operator:
        """The live operator."""
        return self.run().chains[0].head

    def run(self) -> TaskRun:
        """The task of the running epoch, begun now if there is none."""
        if self._run is None:
            program, subtask = self._program, self._setup.subtask
            self._inbox, self._outbox = Outbox(_SENDER), Outbox(subtask)
            for each in self.inputs:
                each.begin_epoch(self._inbox)
            run = TaskRun(
                program.plan, program.level, subtask, self._spec(), self._restored, self._setup.clock, self._outbox
            )
            self._run = run
            self.step(run.start, frozenset({_SENDER} if program.level else ()))
            self._notifications.clear()
        return self._run

    def _spec(self) -> EpochSpec:
        nonces = (self._nonce or "",) * self._program.plan.slots
        restored = self._setup.snapshot
        return EpochSpec(
            attempt=self.attempt,
            epoch=self.number + 1,
            accepted=() if self._nonce is None else (*((),) * self._program.level, nonces),
            restore_epoch=self._restore_epoch,
            restored=restored is not None,
            rows_per_subtask=0,
            max_millis=0,
            reader=None if restored is None else restored.reader,
            notifications=tuple(self._notifications),
            durable_epoch=self.durable_epoch,
        )

    def _restored(self) -> RestoredJob | None:
        return None if self._setup.snapshot is None else self._setup.snapshot.restored_job()

    # -- steps

    def send(self, target: Input, values: Iterable[Any], timestamps: Sequence[int | None] | None) -> None:
        """Rows of an input, in one batch."""
        if timestamps is not None and not self._setup.event_time:
            raise ProgramError("The harness was made with event_time=False: its rows have no timestamps.")
        self.run()
        with self._rolling_back():
            target.send(list(values), timestamps)
        self._deliver()
        self._end_waiting_rows()

    def send_status(self, target: Input, status: ChannelStatus) -> None:
        """Event time of an input goes on, or the input ends."""
        self.run()
        target.send_status(status)
        self._deliver()
        self._end_waiting_rows()

    def read(self, rows: int) -> None:
        """Let the source give at most so many rows."""
        run = self.run()
        run.spec = replace(run.spec, rows_per_subtask=rows, max_millis=_READ_MILLIS)
        self.step(lambda: self._capture(run.read_sources()))

    def ask(self, **changes: Any) -> None:
        """Change what the running epoch is asked for: a checkpoint, to close at its end."""
        run = self.run()
        run.spec = replace(run.spec, **changes)

    def finish(self) -> Acknowledgement:
        """End the epoch, and give what its task told the coordinator."""
        run = self.run()
        for envelope in self._inbox.close(run.spec.barrier("harness")):
            if self._program.level and envelope.slot == self._setup.subtask:
                self.step(run.receive, envelope)
        self.step(run.end_input)
        self.step(run.close_outputs)
        last = self.step(run.commit)
        (told,) = (e for e in last if e.edge == COORDINATOR_EDGE)
        self.acknowledgement = read_acknowledgement(bytes(memoryview(told.payload)))
        self._nonce, self.number, self._run = self.acknowledgement.nonce, run.spec.epoch, None
        return self.acknowledgement

    def abandon(self) -> None:
        """The running task fails: nothing of its epoch is kept."""
        run, self._run = self._run, None
        if run is not None:
            run.abandon()
            for each in self.inputs:
                each.roll_back()

    def step(self, step: Callable[..., T], *arguments: Any) -> T:
        """One step of the task, and the output that it gives."""
        run = self._run
        assert run is not None
        with self._rolling_back():
            result = step(*arguments)
            run.chains[0].flush_outputs()
        self._capture(self._outbox.take_all())
        return result

    def _capture(self, envelopes: Iterable[Envelope]) -> None:
        for envelope in envelopes:
            for output in self.outputs.values():
                output.capture(envelope)

    def _deliver(self) -> None:
        """Hand what the router sent to the task."""
        run = self.run()
        for envelope in self._inbox.take_all():
            if envelope.slot == self._setup.subtask:
                self.step(run.receive, envelope)
            elif unpack_header(envelope.payload)[0].rows:
                raise self._of_another_subtask(envelope)

    def _end_waiting_rows(self) -> None:
        """In a job rows of windows wait for others of their epoch, and calls for their results. Here it is seen at once
        what they do.
        """
        for operator in self.run().chains[0].operators:
            if isinstance(operator, WindowOperator | AsyncWaitOperator):
                self.step(operator.end_rows)

    def _of_another_subtask(self, envelope: Envelope) -> ProgramError:
        header, body = unpack_header(envelope.payload)
        edge = next(each.edge for each in self.inputs if each.edge.edge_id == envelope.edge)
        batch = EdgeReader(edge).read(header, body)
        return ProgramError(
            f"The key {(batch.keys or [None])[0]!r} belongs to subtask {envelope.slot} of {self._setup.parallelism}, "
            f"and this harness is subtask {self._setup.subtask}. Push the row there; owns(row) tells whose it is."
        )

    @contextmanager
    def _rolling_back(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.abandon()
            raise
