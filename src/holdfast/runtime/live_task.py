"""A task's chains and stores, kept by the worker process for the next epoch as a cache with a version.

Spark runs partition i in any worker of the executor. A worker that holds the live objects of exactly the stamp that
the coordinator accepted goes on with them; any other takes them up from the host's disk. Nothing here is the truth:
the truth is the stamp in the local store, and behind it the checkpoint.
"""

from __future__ import annotations

import logging
import os
import pickle
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from holdfast.errors import NotPicklableError, StoreVersionError
from holdfast.runtime.chain import OperatorChain
from holdfast.runtime.context import StateSnapshotContext
from holdfast.runtime.environment import OperatorEnvironment
from holdfast.runtime.epoch import EpochSpec, RestoredJob
from holdfast.runtime.function_fields import PackedFields, pack_fields, unpack_fields
from holdfast.runtime.functions import FunctionOperator
from holdfast.runtime.local_files import attempt_directory, sweep_older_attempts
from holdfast.runtime.metric_values import OperatorMetrics
from holdfast.runtime.operator import Operator
from holdfast.runtime.plan import JobPlan
from holdfast.runtime.prepared import PreparedSubtask
from holdfast.runtime.sealed_file import SealedFiles
from holdfast.runtime.state_context import OperatorStateContext
from holdfast.runtime.state_handler import StreamOperatorStateHandler
from holdfast.state.handles import CheckpointRequest, StateMigrated
from holdfast.state.store import Stamp
from holdfast.types.clock import wall_clock

_log = logging.getLogger(__name__)

_TaskKey = tuple[str, int, int, int]
_live: dict[_TaskKey, LiveTask] = {}
#: Folders of attempts whose predecessors on this host were swept away by this process.
_swept: set[Path] = set()


def forget_live_tasks(job_id: str, before_attempt: int | None = None) -> None:
    """Close and forget what this process holds of a job, or of its attempts before one: who wants it takes it up from
    the host's disk.
    """
    for key in [key for key in _live if key[0] == job_id and (before_attempt is None or key[1] < before_attempt)]:
        _live.pop(key)._let_go()


class LiveTask:
    """A task's chains and stores: ``obtain`` makes it, ``commit`` keeps it for the next epoch, ``abandon`` drops it."""

    def __init__(
        self, plan: JobPlan, level: int, slot: int, attempt: int, clock: Callable[[], int] = wall_clock
    ) -> None:
        edges = {edge.edge_id: edge for edge in plan.edges}
        self._plan = plan
        self._attempt = attempt
        self._clock = clock
        self._key: _TaskKey = (plan.job_id, attempt, level, slot)
        self._directory = attempt_directory(plan, attempt) / f"level-{level}-slot-{slot}"
        self._files = SealedFiles(plan.options.secret, "/".join(map(str, self._key)))
        self.chains = [OperatorChain(spec, slot, edges, plan.options) for spec in plan.chains_of(level, slot)]
        self._stores: dict[str, StreamOperatorStateHandler] = {}
        self._stamp: Stamp | None = None
        self._warned: set[str] = set()
        self._warnings: list[str] = []
        self.restored_bytes = 0

    @staticmethod
    def obtain(
        plan: JobPlan,
        level: int,
        slot: int,
        spec: EpochSpec,
        load_restored: Callable[[], RestoredJob | None],
        clock: Callable[[], int] = wall_clock,
    ) -> LiveTask:
        """The task at the stamp that the coordinator accepted: live, from this host's disk, or from the checkpoint."""
        base = Stamp(spec.epoch - 1, spec.base_nonce(level, slot))
        home = attempt_directory(plan, spec.attempt)
        if base.epoch != spec.restore_epoch and home not in _swept:
            _swept.add(home)
            sweep_older_attempts(plan, spec.attempt)
        task = older = _live.pop((plan.job_id, spec.attempt, level, slot), None)
        if task is None or task._stamp != base:
            if older is not None:
                older._let_go()
            task = LiveTask(plan, level, slot, spec.attempt, clock)
            begin = partial(task._take_up, spec, base, load_restored)
        else:
            begin = partial(task._resume, base)
        try:
            begin()
            if older is not None and older is not task:
                task._adopt_keys(older)
        except BaseException:
            task.abandon()
            raise
        return task

    def _adopt_keys(self, older: LiveTask) -> None:
        """State of an older epoch is of no use, but what keys look like in the store does not change."""
        for operator_id, store in self._stores.items():
            known = older._stores.get(operator_id)
            mine, theirs = store.state.keyed_state, known.state.keyed_state if known is not None else None
            if mine is not None and theirs is not None:
                mine.adopt_keys(theirs)

    def _resume(self, base: Stamp) -> None:
        self.restored_bytes = 0
        for store in self._stores.values():
            store.begin(base)

    def _take_up(self, spec: EpochSpec, base: Stamp, load_restored: Callable[[], RestoredJob | None]) -> None:
        memory = self._read_memory(base)
        rebuild = memory is None
        if rebuild and base.epoch != spec.restore_epoch:
            raise StoreVersionError(
                f"The local state of level {self._key[2]}, slot {self._key[3]} at epoch {base.epoch} is not on this "
                "host, or damaged. The job goes back to its last checkpoint."
            )
        restored = load_restored() if rebuild and spec.restored else None
        for chain in self.chains:
            for operator in chain.operators:
                store = StreamOperatorStateHandler(self._plan, self._attempt, operator.spec, chain.subtask, self._clock)
                self._stores[operator.spec.operator_id] = store
                packed = None if memory is None else memory["operator_state"][operator.spec.operator_id]
                state = store.open(base, restored, spec.reader, packed)
                operator.setup(self._environment(operator, chain.subtask, state))
            chain.connect()
            chain.bind_state()
        if memory is None:
            for chain in self.chains:
                if restored is not None:
                    chain.continue_from(restored)
                chain.open()
        else:
            self._adopt(memory)
        self.restored_bytes = sum(store.restored_bytes for store in self._stores.values())

    def _environment(self, operator: Operator, subtask: int, state: OperatorStateContext) -> OperatorEnvironment:
        return OperatorEnvironment(
            spec=operator.spec,
            job_id=self._plan.job_id,
            job_name=self._plan.job_name,
            subtask=subtask,
            attempt=self._attempt,
            state=state,
            clock=self._clock,
            parameters=self._plan.parameters,
            metric_limit=self._plan.options.max_metrics,
            cached_files=self._plan.files.cached,
        )

    # -- fields between epochs

    def _adopt(self, memory: dict[str, Any]) -> None:
        for chain, dumped in zip(self.chains, memory["chains"], strict=True):
            chain.load(dumped)
            for operator in reversed(chain.operators):
                fields = memory["fields"][operator.spec.operator_id]
                environment = operator.environment
                if isinstance(operator, FunctionOperator) and fields["function"].left_behind:
                    operator.open()
                # Behind open(), which may count: what counts is what was counted before.
                environment.metrics.load(memory["metrics"].get(operator.spec.operator_id))
                if isinstance(operator, FunctionOperator):
                    found = unpack_fields(fields["function"], environment, operator.functions())
                    environment.metrics.adopt_gauges(found)
                    operator.adopt_function_fields(found)
                operator.adopt_fields(unpack_fields(fields["operator"], environment))

    def _write_memory(self, stamp: Stamp) -> None:
        fields: dict[str, dict[str, PackedFields]] = {}
        for chain in self.chains:
            for operator in chain.operators:
                packed = {"operator": pack_fields(operator.travelling_fields(), operator.environment)}
                if isinstance(operator, FunctionOperator):
                    environment, functions = operator.environment, operator.functions()
                    own_fields = operator.function_fields() | environment.metrics.gauge_fields()
                    packed["function"] = pack_fields(own_fields, environment, functions)
                    self._check_left_behind(operator, packed["function"].left_behind)
                fields[operator.spec.operator_id] = packed
        memory = {
            "chains": [chain.dump() for chain in self.chains],
            "fields": fields,
            "metrics": {
                operator.spec.operator_id: counted
                for operator in self._operators()
                if (counted := operator.environment.metrics.dump()) is not None
            },
            "operator_state": {key: store.pack_operator_state() for key, store in self._stores.items()},
        }
        self._directory.mkdir(parents=True, exist_ok=True)
        path = self._memory_path(stamp)
        self._files.write(path, path.stem, pickle.dumps(memory))
        # A fresh time keeps the sweep of dead jobs away from a live one.
        os.utime(self._directory.parent.parent)
        # The stamp before stays: an epoch that nobody accepts is run again from it.
        for old in self._directory.glob("*.memory"):
            if int(old.name.split("-")[0]) < stamp.epoch - 1:
                old.unlink(missing_ok=True)

    def _read_memory(self, stamp: Stamp) -> dict[str, Any] | None:
        path = self._memory_path(stamp)
        try:
            data = self._files.read(path, path.stem)
        except FileNotFoundError:
            return None
        if data is None:
            _log.warning("%s is damaged, or this attempt has not written it: it is not used", path)
            return None
        memory: dict[str, Any] = pickle.loads(data)
        return memory

    def _memory_path(self, stamp: Stamp) -> Path:
        return self._directory / f"{stamp.epoch}-{stamp.nonce}.memory"

    def _check_left_behind(self, operator: FunctionOperator, left_behind: tuple[str, ...]) -> None:
        for name in left_behind:
            if name in operator.made_from_state:
                raise NotPicklableError(
                    f"{operator.where}: the field '{name}', which initialize_state() made, cannot be pickled, so it "
                    "would not get to the worker process of the next epoch, and initialize_state() is not called there "
                    "again. Make it in open(), or leave what cannot be pickled out in its __getstate__."
                )
            what = name if name in operator.environment.metrics.gauge_fields() else f"field '{name}'"
            warning = (
                f"{operator.where}: the {what} cannot be pickled, so it does not travel between worker processes; "
                "open() runs again where it is missing."
            )
            if warning not in self._warned:
                self._warned.add(warning)
                self._warnings.append(warning)

    def take_warnings(self) -> list[str]:
        warnings, self._warnings = self._warnings, []
        for operator in self._operators():
            warnings += operator.environment.metrics.take_warnings()
        return warnings + [warning for store in self._stores.values() for warning in store.take_warnings()]

    def take_migrations(self) -> list[StateMigrated]:
        return [migrated for store in self._stores.values() for migrated in store.take_migrations()]

    # -- the end of an epoch

    def _operators(self) -> Iterator[Operator]:
        return (operator for chain in self.chains for operator in chain.operators)

    def sample_gauges(self) -> None:
        for operator in self._operators():
            operator.environment.metrics.sample_gauges()

    def metric_reports(self) -> Iterator[OperatorMetrics]:
        """What functions have counted since the epoch before."""
        for operator in self._operators():
            environment = operator.environment
            report = environment.metrics.report(operator.spec.operator_id, environment.subtask)
            if report is not None:
                yield report

    def prepare_snapshots(self, request: CheckpointRequest, nonce: str) -> list[PreparedSubtask]:
        """Pin the state of every operator, tail to head: each function first, then its backends."""
        prepared: list[PreparedSubtask] = []
        for chain in self.chains:
            for operator in reversed(chain.operators):
                store = self._stores[operator.spec.operator_id]
                with store.raw_outputs() as raw:
                    operator.snapshot_state(StateSnapshotContext(request.checkpoint_id, request.timestamp, raw))
                prepared.append(store.prepare(request, nonce, raw, chain.recorded_progress(operator)))
        return prepared

    def commit(self, spec: EpochSpec, nonce: str) -> None:
        stamp = Stamp(spec.epoch, nonce)
        self._write_memory(stamp)
        for store in self._stores.values():
            store.commit(stamp, spec.durable_epoch)
        self._stamp = stamp
        _live[self._key] = self

    def abandon(self) -> None:
        """The epoch failed here: nothing of it is kept."""
        _live.pop(self._key, None)
        for chain in self.chains:
            # Recovery aborts what is left; the first error is the one to report.
            with suppress(Exception):
                chain.fail_epoch()
        for store in self._stores.values():
            store.rollback()
        self._let_go()

    def dispose(self) -> None:
        """The attempt ends in order: close functions, remove what the host holds of it."""
        _live.pop(self._key, None)
        for chain in self.chains:
            chain.close()
        self._let_go()
        for store in self._stores.values():
            store.remove()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _let_go(self) -> None:
        """This process no longer holds the task, whose attempt may go on in another one."""
        for chain in self.chains:
            chain.let_go()
        for store in self._stores.values():
            store.close()
