"""From a program to a job that an engine can run: its plan, and what controls it."""

from __future__ import annotations

import logging
import uuid
from dataclasses import replace
from typing import Any

import cloudpickle
import xxhash

from holdfast.graph.declared_types import refuse_generic_types
from holdfast.graph.facts_of_graph import job_facts
from holdfast.graph.job_graph import JobGraph, JobSettings, build_job_graph
from holdfast.graph.pickled_program import pickled_of_program
from holdfast.graph.planner import plan_job
from holdfast.graph.stream_graph import StreamGraph
from holdfast.job.engine import Engine
from holdfast.job.job import Job
from holdfast.job.starting_snapshot import adopted_max_parallelism, refuse_pickled_start
from holdfast.runtime.plan import TaskOptions
from holdfast.runtime.sink import TwoPhaseCommitSink
from holdfast.runtime.source import Source, SourceFunction
from holdfast.state.backends import load_backend

logger = logging.getLogger(__name__)


def job_of(graph: StreamGraph, job_id: str, name: str, settings: JobSettings, engine: Engine) -> Job:
    """Check the program and make a job of it. A snapshot that must not be restored is refused before the engine is
    asked for anything.
    """
    refuse_pickled_start(graph, job_id, name, settings)
    parallelism = settings.parallelism or engine.default_parallelism
    settings = replace(settings, parallelism=parallelism)
    job_graph = build_job_graph(graph, job_id, name, settings, parallelism)
    adopted = adopted_max_parallelism(job_graph)
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


def _warn_about_checkpointing(graph: JobGraph) -> None:
    settings = graph.settings
    if settings.checkpoint.interval_ms is None and settings.restart.kind != "none":
        logger.warning(
            "Checkpointing is off and a restart strategy is set: a restart begins with empty state at the beginning "
            "of the sources, and "
            "transactional sinks publish nothing before the end of the input."
        )
