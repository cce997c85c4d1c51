"""What a program would do with a snapshot, before anything runs."""

from __future__ import annotations

from dataclasses import replace

from holdfast.checkpoint.restore_rules import Matching, OperatorMatch, decide
from holdfast.checkpoint.storage import open_snapshot
from holdfast.errors import HoldfastError
from holdfast.graph.facts_of_graph import job_facts
from holdfast.graph.job_graph import JobGraph, JobSettings, build_job_graph
from holdfast.graph.planner import PlannedJob, plan_job
from holdfast.graph.stream_graph import StreamGraph
from holdfast.job.data_frame_progress import refuse_state
from holdfast.job.engine import Engine
from holdfast.job.restore_plan import OperatorPlan, RestorePlan
from holdfast.job.restore_point import restore_rules
from holdfast.job.starting_snapshot import pickled_of
from holdfast.job.untrusted import refusal
from holdfast.runtime.data_frame_input import DataFrameInput
from holdfast.runtime.declarations import Occasion
from holdfast.runtime.plan import OperatorSpec, TaskOptions
from holdfast.runtime.rehearsal import rehearse_operator, stored_states
from holdfast.state.backends import load_backend
from holdfast.state.handles import FileHandle, OperatorRecord
from holdfast.state.outcomes import Fate, StateOutcome
from holdfast.state.snapshot_io import SnapshotReader

_JOB = "rehearsal"


def rehearse(
    graph: StreamGraph, settings: JobSettings, path: str, open_functions: bool, engine: Engine
) -> RestorePlan:
    """Nothing is written, no epoch is run, and the program can be executed afterwards."""
    metadata, reader = open_snapshot(path)
    parallelism = settings.parallelism or engine.default_parallelism
    job_graph = build_job_graph(graph, _JOB, _JOB, settings, parallelism)
    matching = decide(metadata, job_facts(job_graph).operators, restore_rules(settings.recovery))
    job_graph = build_job_graph(graph, _JOB, _JOB, settings, parallelism, matching.max_parallelism)
    planned = plan_job(job_graph, load_backend(settings.backend.name, settings.backend.options), TaskOptions())
    occasion = Occasion(planned.plan, metadata.checkpoint_id, open_functions)
    if not settings.recovery.allow_pickle:
        matching = _without_pickles(path, job_graph, matching, reader)
    operators = _Rehearsal(planned, _ReadOnce(reader), occasion, engine).operators(matching)
    return RestorePlan(path, metadata.checkpoint_id, tuple(operators), matching.refusal)


def _without_pickles(path: str, graph: JobGraph, matching: Matching, reader: SnapshotReader) -> Matching:
    """Operators that would unpickle something are refused, so that nothing of them is opened."""
    pickled = pickled_of(graph, matching, reader)
    operators = []
    for match in matching.operators:
        found = pickled.get(match.operator.operator_id)
        reason = match.refusal or (refusal(path, found) if found else None)
        operators.append(replace(match, refusal=reason))
    return replace(matching, operators=tuple(operators))


class _Rehearsal:
    def __init__(self, planned: PlannedJob, reader: SnapshotReader, occasion: Occasion, engine: Engine) -> None:
        self._specs = {spec.operator_id: spec for spec in planned.plan.operators()}
        self._data_frames = {each.operator_id: each for each in planned.data_frames}
        self._reader = reader
        self._occasion = occasion
        self._engine = engine

    def operators(self, matching: Matching) -> list[OperatorPlan]:
        claimed = [self._of_program(match) for match in matching.operators]
        fate = Fate.DROPPED if matching.unclaimed_refusal is None else Fate.REFUSED
        reason = matching.unclaimed_refusal or "no operator of the program claims it"
        return claimed + [self._unclaimed(record, fate, reason) for record in matching.unclaimed]

    def _of_program(self, match: OperatorMatch) -> OperatorPlan:
        operator, record = match.operator, match.record
        spec = self._specs.get(operator.operator_id)
        refusal = match.refusal
        if refusal is not None:
            states = self._all_of(record, Fate.REFUSED, refusal) if record is not None else []
            reads: tuple[int, ...] = ()
        elif spec is None:
            source = self._data_frames[operator.operator_id]
            states, reads = self._of_data_frame(source, record) if record is not None else [], ()
        else:
            states, reads, refusal = self._of_spec(spec, match)
        return OperatorPlan(
            operator.operator_id,
            operator.name,
            operator.uid,
            (record.parallelism if record is not None else None, operator.parallelism),
            (record.max_parallelism if record is not None else None, match.max_parallelism),
            tuple(states),
            reads,
            refusal,
            match.warnings,
        )

    def _of_data_frame(self, source: DataFrameInput, record: OperatorRecord) -> list[StateOutcome]:
        """Spark reads it: its state is that it was read, or how far."""
        if source.streaming:
            refusal = self._engine.refuse_position(source, record, self._reader)
        else:
            refusal = refuse_state(source.name, record)
        return self._all_of(record, Fate.KEPT if refusal is None else Fate.REFUSED, refusal or "")

    def _of_spec(
        self, spec: OperatorSpec, match: OperatorMatch
    ) -> tuple[list[StateOutcome], tuple[int, ...], str | None]:
        record = match.record
        found = rehearse_operator(spec, record, self._reader, self._occasion)
        states = list(found.states)
        if record is not None:
            kept = Fate.DROPPED if "transactions" in match.dropped else Fate.KEPT
            states += _transactions(record, kept, "published when the job starts" if kept is Fate.KEPT else "")
            if "keyed state" in match.dropped:
                keyed = stored_states(record, self._reader, Fate.DROPPED, f"'{spec.name}' is not behind a key_by")
                states += [one for one in keyed if one.state not in {known.state for known in states}]
        return states, found.bytes_per_subtask, found.refusal

    def _unclaimed(self, record: OperatorRecord, fate: Fate, reason: str) -> OperatorPlan:
        return OperatorPlan(
            record.operator_id,
            record.name,
            record.uid,
            (record.parallelism, None),
            (record.max_parallelism, None),
            tuple(self._all_of(record, fate, reason)),
            refusal=reason if fate is Fate.REFUSED else None,
        )

    def _all_of(self, record: OperatorRecord, fate: Fate, detail: str) -> list[StateOutcome]:
        try:
            states = stored_states(record, self._reader, fate, detail)
        except HoldfastError:
            # What a DataFrame source writes is no list.
            states = [StateOutcome("position", "source", fate, detail)]
        return [*states, *_transactions(record, fate, detail)]


def _transactions(record: OperatorRecord, fate: Fate, detail: str) -> list[StateOutcome]:
    number = sum(len(snapshot.transactions) for snapshot in record.subtasks)
    return [StateOutcome(f"{number} pre-committed", "transactions", fate, detail)] if number else []


class _ReadOnce(SnapshotReader):
    """All subtasks look into the same files."""

    def __init__(self, reader: SnapshotReader) -> None:
        self._reader = reader
        self._whole: dict[FileHandle, bytes] = {}
        self._ranges: dict[tuple[FileHandle, int, int], bytes] = {}

    def read(self, handle: FileHandle) -> bytes:
        if handle not in self._whole:
            self._whole[handle] = self._reader.read(handle)
        return self._whole[handle]

    def read_range(self, handle: FileHandle, offset: int, length: int) -> bytes:
        place = handle, offset, length
        if place not in self._ranges:
            self._ranges[place] = self._reader.read_range(handle, offset, length)
        return self._ranges[place]
