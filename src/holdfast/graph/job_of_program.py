"""From a program to a job that an engine can run: graph, plan, and what the coordinator must know."""

from __future__ import annotations

import logging
import uuid
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Any

import cloudpickle
import xxhash

from holdfast.checkpoint.completed_store import FileCompletedCheckpointStore
from holdfast.checkpoint.job_directory import JobDirectory
from holdfast.checkpoint.job_facts import JobFacts, JobOperator
from holdfast.checkpoint.restore_rules import Matching, decide, match_operators
from holdfast.checkpoint.storage import FileCheckpointStorage, open_snapshot
from holdfast.errors import CheckpointError, StorageError
from holdfast.graph.declared_types import refuse_generic_types
from holdfast.graph.job_graph import JobGraph, JobSettings, build_job_graph
from holdfast.graph.pickled_program import pickled_of_program
from holdfast.graph.planner import plan_job
from holdfast.graph.stream_graph import StreamGraph
from holdfast.job.engine import Engine
from holdfast.job.job import Job
from holdfast.job.restore_point import restore_rules
from holdfast.job.untrusted import pickled_in, refuse_pickled
from holdfast.runtime.plan import TaskOptions
from holdfast.runtime.sink import TwoPhaseCommitSink
from holdfast.runtime.source import Source, SourceFunction
from holdfast.state.backends import load_backend
from holdfast.state.handles import CheckpointMetadata
from holdfast.state.keys import KEY_HASH
from holdfast.state.pickled_states import PickledState
from holdfast.state.snapshot_io import SnapshotReader

logger = logging.getLogger(__name__)


def job_of(graph: StreamGraph, job_id: str, name: str, settings: JobSettings, engine: Engine) -> Job:
    """Check the program and make a job of it. A snapshot that must not be restored is refused before the engine is
    asked for anything.
    """
    _refuse_pickled(graph, job_id, name, settings)
    parallelism = settings.parallelism or engine.default_parallelism
    settings = replace(settings, parallelism=parallelism)
    job_graph = build_job_graph(graph, job_id, name, settings, parallelism)
    adopted = _adopted_max_parallelism(job_graph)
    if adopted:
        job_graph = build_job_graph(graph, job_id, name, settings, parallelism, adopted)
    _warn_about_checkpointing(job_graph)
    job = plan_job_of(job_graph, graph, _store_name(job_graph))
    if not settings.program.generic_types:
        refuse_generic_types(job_graph, job.plan)
    if settings.checkpoint.enabled:
        for state in pickled_of_program(job_graph, job.plan):
            logger.warning("In checkpoints, %s", state.advice())
    return job


def plan_job_of(graph: JobGraph, program: StreamGraph, store_name: str) -> Job:
    """``store_name`` is that of the job's local stores, whatever its parallelism."""

    def replan(parallelism: int) -> Job:
        settings = replace(graph.settings, parallelism=parallelism)
        pinned = {operator.operator_id: operator.max_parallelism for operator in graph.operators}
        changed = build_job_graph(program, graph.job_id, graph.name, settings, parallelism, pinned)
        return plan_job_of(changed, program, store_name)

    settings = graph.settings
    options = TaskOptions(
        envelope_bytes=settings.epoch.envelope_bytes,
        max_row_bytes=settings.epoch.max_row_bytes,
        max_metrics=settings.epoch.max_metrics,
        local_dir=settings.backend.local_dir,
        local_recovery=settings.recovery.from_local,
        store_name=store_name,
    )
    planned = plan_job(graph, load_backend(settings.backend.name, settings.backend.options), options)
    sinks: dict[str, Any] = {
        o.operator_id: cloudpickle.loads(o.body) for o in graph.operators if isinstance(o.node.body, TwoPhaseCommitSink)
    }
    return Job(
        plan=planned.plan,
        parallelism=settings.parallelism or planned.plan.slots,
        facts=job_facts(graph),
        checkpoint=settings.checkpoint,
        restart=settings.restart,
        epoch=settings.epoch,
        recovery=settings.recovery,
        sinks=sinks,
        data_frames=planned.data_frames,
        endless_sources=tuple(
            o.node.body
            for o in graph.operators
            if isinstance(o.node.body, (Source, SourceFunction)) and not o.node.body.bounded
        ),
        zookeeper=settings.zookeeper,
        failures=settings.failures,
        replan=replan,
    )


def _store_name(graph: JobGraph) -> str:
    """Jobs of one id and one checkpoint directory are runs of one job, and only one of them owns it at a time."""
    directory = graph.settings.checkpoint.directory
    owned = uuid.uuid4().hex if directory is None else directory
    return f"{graph.job_id}-{xxhash.xxh32_hexdigest(owned.encode())}"


def job_facts(graph: JobGraph) -> JobFacts:
    """What the coordinator, and the rules of restoring, know of the job."""
    operators = tuple(
        JobOperator(
            operator_id=o.operator_id,
            name=o.name,
            parallelism=o.parallelism,
            max_parallelism=o.max_parallelism,
            uid=o.uid,
            uid_hash=o.node.uid_hash,
            max_parallelism_explicit=o.max_parallelism_explicit,
            keyed=o.node.keyed,
            is_sink=o.node.is_sink,
            inputs=tuple(edge.source.operator_id for edge in graph.inputs_of(o)),
        )
        for o in graph.operators
    )
    backend = graph.settings.backend
    return JobFacts(graph.job_id, graph.name, KEY_HASH, operators, load_backend(backend.name, backend.options).name)


def _refuse_pickled(program: StreamGraph, job_id: str, name: str, settings: JobSettings) -> None:
    """PickledStateError where the job is to start from a path, and would have to unpickle what is there."""
    path = settings.recovery.path
    if path is None or settings.recovery.allow_pickle:
        return
    # Which operators there are does not depend on their parallelism.
    graph = build_job_graph(program, job_id, name, settings, settings.parallelism or 1)
    found = _snapshot_to_start_from(graph)
    metadata, reader = found if found is not None else (None, None)
    if metadata is None or reader is None:
        return
    matching = decide(metadata, job_facts(graph).operators, restore_rules(settings.recovery))
    refuse_pickled(path, chain.from_iterable(pickled_of(graph, matching, reader).values()))


def pickled_of(graph: JobGraph, matching: Matching, reader: SnapshotReader) -> dict[str, list[PickledState]]:
    """What each operator would unpickle of what it restores, by its id. What Spark reads has a position of its own
    form.
    """
    found, records = {}, matching.records
    for operator in graph.operators:
        record, body = records.get(operator.operator_id), operator.node.body
        if record is not None and operator.node.data_frame is None:
            sink = body if isinstance(body, TwoPhaseCommitSink) else None
            found[operator.operator_id] = pickled_in(record, reader, sink)
    return found


def _adopted_max_parallelism(graph: JobGraph) -> dict[str, int]:
    """A snapshot's maximum parallelism holds for operators that set none. What else is worth to know is logged."""
    found = _snapshot_to_start_from(graph)
    if found is None:
        return {}
    metadata, _ = found
    matching = match_operators(metadata, job_facts(graph).operators, restore_rules(graph.settings.recovery))
    for warning in matching.warnings():
        logger.warning(warning)
    return matching.max_parallelism


#: What a snapshot says of itself; and what reads its files, where it is the one that was asked for by its path.
_Found = tuple[CheckpointMetadata, SnapshotReader | None]


def _snapshot_to_start_from(graph: JobGraph) -> _Found | None:
    """The newest checkpoint that an earlier driver left under the same job id, else the snapshot that was asked for."""
    checkpoint, recovery = graph.settings.checkpoint, graph.settings.recovery
    if checkpoint.directory is not None:
        storage = FileCheckpointStorage(checkpoint.directory, graph.job_id)
        store = FileCompletedCheckpointStore(storage, checkpoint.num_retained)
        store.recover()
        latest = store.latest()
        end = JobDirectory(checkpoint.directory, graph.job_id).read_end(latest.checkpoint_id if latest else None)
        if latest is not None and end is None:
            return latest.metadata, None
        if end is not None and not end.published:
            asked_for, stopped_with = _readable(recovery.path), _readable(end.savepoint)
            return asked_for or (stopped_with and (stopped_with[0], None))
    return open_snapshot(recovery.path) if recovery.path is not None else None


def _readable(path: str | None) -> _Found | None:
    """The snapshot at ``path``, None where it cannot be read: whoever brings the job's end about tells why."""
    with suppress(CheckpointError, StorageError):
        return open_snapshot(path) if path is not None else None
    return None


def _warn_about_checkpointing(graph: JobGraph) -> None:
    settings = graph.settings
    if settings.checkpoint.interval_ms is None and settings.restart.kind != "none":
        logger.warning(
            "Checkpointing is off and a restart strategy is set: a restart begins with empty state at the beginning "
            "of the sources, and "
            "transactional sinks publish nothing before the end of the input."
        )
