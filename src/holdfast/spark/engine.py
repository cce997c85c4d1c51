"""Spark as the engine of jobs: the port of ``holdfast.job.engine``, implemented."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import cloudpickle
from pyspark.sql import DataFrame, SparkSession

from holdfast.errors import HoldfastError
from holdfast.job.control import JobControl
from holdfast.job.engine import AttemptIdentity
from holdfast.job.job import Job
from holdfast.job.restore_point import RestorePoint
from holdfast.runtime.data_frame_input import DataFrameInput
from holdfast.runtime.packed_plan import pack_plan
from holdfast.runtime.query import Query, Transformation, View
from holdfast.runtime.task_files import TaskFiles
from holdfast.spark.accelerations import Accelerations
from holdfast.spark.anchor import Anchor, build_anchor
from holdfast.spark.application import application_settings, check_application, choose_python
from holdfast.spark.epoch_runner import SparkEpochRunner
from holdfast.spark.executors import ExecutorWait, executors_of, is_local
from holdfast.spark.failures import failure_of
from holdfast.spark.inputs import SparkInputs
from holdfast.spark.program_modules import modules_of_program
from holdfast.spark.program_needs import ProgramNeeds
from holdfast.spark.queries import analyse, without_rows
from holdfast.spark.sent_files import send_files
from holdfast.spark.session import (
    application_is_gone,
    check_session,
    driver_host,
    epoch_session,
    obtain_session,
    was_submitted,
)
from holdfast.spark.storage_check import check_from_executors
from holdfast.spark.stream_inputs import refuse_position
from holdfast.state.handles import OperatorRecord
from holdfast.state.snapshot_io import SnapshotReader
from holdfast.types.clock import wall_clock
from holdfast.types.dependencies import DependencySettings
from holdfast.types.settings import SparkSettings

logger = logging.getLogger(__name__)

_NONE = DependencySettings()


class SparkEngine:
    """The Spark application that a program runs in: that of its DataFrames, else the one of the active session, else a
    local one. A session is made when it is first needed.
    """

    def __init__(
        self,
        settings: SparkSettings,
        data_frames: Sequence[Any] = (),
        dependencies: DependencySettings = _NONE,
    ) -> None:
        self._settings = settings
        self._data_frames = data_frames
        self._dependencies = dependencies

    @cached_property
    def _session(self) -> SparkSession:
        if self._data_frames:
            session: SparkSession = self._data_frames[0].sparkSession
            check_session(session)
        else:
            started_with = application_settings(self._dependencies, self._settings.conf, was_submitted())
            session = obtain_session({**self._settings.conf, **started_with}, self._settings.internals)
        check_application(session, self._dependencies)
        return session

    @cached_property
    def _files(self) -> TaskFiles:
        """What was sent to the executors."""
        files = send_files(self._session, self._dependencies)
        choose_python(self._session, self._dependencies)
        return files

    @property
    def application_id(self) -> str:
        return str(self._session.sparkContext.applicationId)

    @property
    def driver_host(self) -> str | None:
        return driver_host(self._session)

    @property
    def default_parallelism(self) -> int:
        return int(self._session.sparkContext.defaultParallelism)

    def clock(self) -> int:
        return wall_clock()

    def analyse(self, text: str, views: Sequence[View], transformation: Transformation | None = None) -> Query:
        return analyse(self._session, text, views, transformation)

    def data_frame(self, view: View) -> DataFrame:
        return without_rows(self._session, "rows_of_view", view)

    @contextmanager
    def open(self, job: Job, control: JobControl) -> Iterator[SparkEngineSession]:
        own = not (job.data_frames or job.plan.queries)
        with epoch_session(self._session, self._settings.conf, own) as session:
            accelerations = Accelerations.of(session, self._settings)
            level = logging.WARNING if accelerations.lacking else logging.INFO
            logger.log(level, "Spark %s; accelerations %s", session.version, accelerations.describe())
            wait = ExecutorWait(session, accelerations, self._settings.executor_wait_ms / 1000, control.pause)
            yield SparkEngineSession(session, job, control, accelerations, wait, self._files)

    def failure_of(self, error: BaseException) -> HoldfastError:
        return failure_of(error)

    def refuse_position(self, source: DataFrameInput, record: OperatorRecord, reader: SnapshotReader) -> str | None:
        return refuse_position(source, record, reader)


class SparkEngineSession:
    """The session that the epochs of one job run in."""

    def __init__(
        self,
        session: SparkSession,
        job: Job,
        control: JobControl,
        accelerations: Accelerations,
        wait: ExecutorWait,
        files: TaskFiles,
    ) -> None:
        self._session = session
        self._job = job
        self._control = control
        self._accelerations = accelerations
        self._wait = wait
        #: Whether executors have tried the checkpoint directory.
        self._checked = False
        packed = cloudpickle.dumps(job.plan)
        modules = tuple(modules_of_program(packed, job.plan))
        self._packed_plan = pack_plan(job.plan, packed, files)
        self._needs = ProgramNeeds(modules, files, job.plan.options.local_dir)

    def executors(self) -> frozenset[str]:
        return executors_of(self._session, self._accelerations)

    def await_executors(self, before: int) -> int:
        # More executors than slots are of no use.
        slots = self._job.plan.slots
        return self._wait.again(min(before, slots)) if before else self._wait.first(slots)

    @property
    def is_gone(self) -> bool:
        return application_is_gone(self._session)

    def inputs(self, point: RestorePoint | None) -> SparkInputs:
        return SparkInputs(self._job, self._session, self._accelerations, point, self._control.wake)

    def begin_attempt(self, identity: AttemptIdentity, point: RestorePoint | None) -> SparkEpochRunner:
        anchor = build_anchor(self._session, self._job.plan.slots, self._accelerations, self._needs)
        try:
            self._check_storage(anchor)
            restored = point.restored_job() if point is not None else None
            return SparkEpochRunner(anchor, self._job.plan, self._packed_plan, identity, restored, self._accelerations)
        except BaseException:
            anchor.release()
            raise

    def _check_storage(self, anchor: Anchor) -> None:
        """From the executors of the first attempt. Later ones find out by their first snapshot."""
        directory = self._job.checkpoint.directory
        if not self._checked and directory is not None and not is_local(self._session):
            check_from_executors(anchor, directory)
        self._checked = True
