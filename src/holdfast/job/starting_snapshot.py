"""The snapshot that a job is going to start from, looked at before the engine is asked for anything."""

from __future__ import annotations

import logging
from contextlib import suppress
from itertools import chain

from holdfast.checkpoint.completed_store import FileCompletedCheckpointStore
from holdfast.checkpoint.job_directory import JobDirectory
from holdfast.checkpoint.restore_rules import Matching, decide, match_operators
from holdfast.checkpoint.storage import FileCheckpointStorage, open_snapshot
from holdfast.errors import CheckpointError, StorageError
from holdfast.graph.facts_of_graph import job_facts
from holdfast.graph.job_graph import JobGraph, JobSettings, build_job_graph
from holdfast.graph.stream_graph import StreamGraph
from holdfast.job.restore_point import restore_rules
from holdfast.job.untrusted import pickled_in, refuse_pickled
from holdfast.runtime.sink import TwoPhaseCommitSink
from holdfast.state.handles import CheckpointMetadata
from holdfast.state.pickled_states import PickledState
from holdfast.state.snapshot_io import SnapshotReader

logger = logging.getLogger(__name__)


def refuse_pickled_start(program: StreamGraph, job_id: str, name: str, settings: JobSettings) -> None:
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


def adopted_max_parallelism(graph: JobGraph) -> dict[str, int]:
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
