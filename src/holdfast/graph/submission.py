"""From a program to a running job: session, graph, plan, job master, and the thread that drives it."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import cloudpickle
import xxhash

from holdfast.checkpoint.completed_store import FileCompletedCheckpointStore
from holdfast.checkpoint.job import JobFacts, JobOperator
from holdfast.checkpoint.job_directory import JobDirectory
from holdfast.checkpoint.restore_rules import match_operators
from holdfast.checkpoint.storage import FileCheckpointStorage, open_snapshot
from holdfast.errors import CheckpointError, StorageError
from holdfast.graph.job_graph import JobGraph, JobSettings, build_job_graph
from holdfast.graph.planner import plan_job
from holdfast.graph.stream_graph import StreamGraph
from holdfast.runtime.plan import TaskOptions
from holdfast.runtime.sink import TwoPhaseCommitSink
from holdfast.spark.checkpoints import restore_rules
from holdfast.spark.gateway import JobGateway
from holdfast.spark.job import Job
from holdfast.spark.job_master import JobMaster
from holdfast.spark.session import obtain_session
from holdfast.state.backends import load_backend
from holdfast.state.handles import CheckpointMetadata
from holdfast.state.keys import KEY_HASH

logger = logging.getLogger(__name__)


class RunningJob:
    """A job master and its thread. ``application_id`` is that of the Spark application it runs in."""

    def __init__(self, graph: JobGraph, master: JobMaster, application_id: str) -> None:
        self.graph = graph
        self.application_id = application_id
        self.master = master
        self.gateway = JobGateway(master)
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[BaseException | None], None]] = []
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name=f"holdfast-{graph.job_id[:8]}", daemon=True)

    def start(self) -> RunningJob:
        self._thread.start()
        return self

    def on_end(self, callback: Callable[[BaseException | None], None]) -> None:
        """Called with the job's error, or None, when it has ended; at once when it already has."""
        with self._lock:
            if not self._ended.is_set():
                self._callbacks.append(callback)
                return
        callback(self._error)

    @property
    def running(self) -> bool:
        return not self._ended.is_set()

    def _run(self) -> None:
        try:
            self.master.run()
        except BaseException as error:
            self._error = error
        with self._lock:
            self._ended.set()
            callbacks = list(self._callbacks)
        for callback in callbacks:
            callback(self._error)


def submit(graph: StreamGraph, job_id: str, name: str, settings: JobSettings) -> RunningJob:
    """Check the program, make a job of it and start it."""
    session = session_of(graph, settings)
    parallelism = settings.parallelism or session.sparkContext.defaultParallelism
    job_graph = build_job_graph(graph, job_id, name, settings, parallelism)
    adopted = _adopted_max_parallelism(job_graph)
    if adopted:
        job_graph = build_job_graph(graph, job_id, name, settings, parallelism, adopted)
    _warn_about_checkpointing(job_graph)
    return RunningJob(job_graph, JobMaster(_job(job_graph), session), session.sparkContext.applicationId).start()


def session_of(graph: StreamGraph, settings: JobSettings) -> Any:
    """The Spark session that the program runs in: that of its DataFrames, else the active one, else a local one."""
    data_frames = [node.data_frame for node in graph.nodes if node.data_frame is not None]
    return data_frames[0].sparkSession if data_frames else obtain_session(settings.spark)


def _job(graph: JobGraph) -> Job:
    settings = graph.settings
    options = TaskOptions(
        envelope_bytes=settings.epoch.envelope_bytes,
        max_row_bytes=settings.epoch.max_row_bytes,
        local_dir=settings.backend.local_dir,
        local_recovery=settings.recovery.from_local,
        store_name=_store_name(graph),
    )
    planned = plan_job(graph, load_backend(settings.backend.name, settings.backend.options), options)
    sinks: dict[str, Any] = {
        o.operator_id: cloudpickle.loads(o.body) for o in graph.operators if isinstance(o.node.body, TwoPhaseCommitSink)
    }
    return Job(
        plan=planned.plan,
        facts=job_facts(graph),
        checkpoint=settings.checkpoint,
        restart=settings.restart,
        epoch=settings.epoch,
        recovery=settings.recovery,
        sinks=sinks,
        data_frames=planned.data_frames,
        spark_settings=settings.spark,
        zookeeper=settings.zookeeper,
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


def _adopted_max_parallelism(graph: JobGraph) -> dict[str, int]:
    """A snapshot's maximum parallelism holds for operators that set none. What else is worth to know is logged."""
    metadata = _snapshot_to_start_from(graph)
    if metadata is None:
        return {}
    matching = match_operators(metadata, job_facts(graph).operators, restore_rules(graph.settings.recovery))
    for warning in matching.warnings():
        logger.warning(warning)
    return matching.max_parallelism


def _snapshot_to_start_from(graph: JobGraph) -> CheckpointMetadata | None:
    """The newest checkpoint that an earlier driver left under the same job id, else the snapshot that was asked for."""
    checkpoint, recovery = graph.settings.checkpoint, graph.settings.recovery
    if checkpoint.directory is not None:
        storage = FileCheckpointStorage(checkpoint.directory, graph.job_id)
        store = FileCompletedCheckpointStore(storage, checkpoint.num_retained)
        store.recover()
        latest = store.latest()
        end = JobDirectory(checkpoint.directory, graph.job_id).read_end(latest.checkpoint_id if latest else None)
        if latest is not None and end is None:
            return latest.metadata
        if end is not None and not end.published:
            return _readable(recovery.path) or _readable(end.savepoint)
    return open_snapshot(recovery.path)[0] if recovery.path is not None else None


def _readable(path: str | None) -> CheckpointMetadata | None:
    """Of a job whose end is brought about: whoever does that tells what is missing."""
    with suppress(CheckpointError, StorageError):
        return open_snapshot(path)[0] if path is not None else None
    return None


def _warn_about_checkpointing(graph: JobGraph) -> None:
    settings = graph.settings
    if settings.checkpoint.interval_ms is None and settings.restart.kind != "none":
        logger.warning(
            "Checkpointing is off and a restart strategy is set: a restart begins with empty state at the beginning "
            "of the sources, and "
            "transactional sinks publish nothing before the end of the input."
        )
