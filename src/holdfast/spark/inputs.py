"""What Spark itself reads for a job, epoch by epoch: bounded DataFrames and streams. Kept by the driver, which
acknowledges for these sources.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession

from holdfast.job.data_frame_progress import DataFrameProgress
from holdfast.job.engine import TakenInputs
from holdfast.job.job import Job
from holdfast.job.restore_point import RestorePoint
from holdfast.runtime.upload import STORING_ERRORS, UploadResult
from holdfast.spark.accelerations import Accelerations
from holdfast.spark.slices import DataFrameSlice, SlicePlanner
from holdfast.spark.stream_inputs import StreamInputs
from holdfast.state.snapshot_io import SnapshotWriter


class SparkInputs:
    """What Spark reads for one attempt: bounded DataFrames and streams."""

    def __init__(
        self,
        job: Job,
        session: SparkSession,
        accelerations: Accelerations,
        point: RestorePoint | None,
        arrived: Callable[[], None],
    ) -> None:
        bounded = [each for each in job.data_frames if not each.streaming]
        self._bounded = DataFrameProgress(bounded, point.operators if point is not None else ())
        self._planner = SlicePlanner(job.plan, accelerations)
        self._streams = StreamInputs(job, session, accelerations, point, self._planner, arrived)
        #: Whether there is nothing to read as long as no stream has something.
        self.alone = self._streams.any and 0 not in job.plan.levels

    def start(self) -> None:
        self._streams.start()

    def waiting(self) -> bool:
        """Whether ``take`` would give something, or tell of an end."""
        return bool(self._bounded.unread()) or self._streams.waiting()

    def take(self, read: bool, drain: bool) -> TakenInputs:
        """What an epoch reads: nothing without ``read``. With ``drain`` all inputs count as ended."""
        unread = self._bounded.unread()
        micro_batch = self._streams.take() if read else None
        slices = tuple(self._planner.whole(each) for each in unread if read)
        over = self._bounded.read | self._streams.ended
        if read or drain:
            over |= {each.operator_id for each in unread}
        if drain:
            over |= self._streams.unended
        return TakenInputs(slices if micro_batch is None else (*slices, micro_batch), over)

    def accept(self, taken: TakenInputs, epoch: int) -> None:
        """The epoch that read them counts."""
        for each in taken.slices:
            assert isinstance(each, DataFrameSlice)
            if each.streaming:
                self._streams.accept(epoch)
            else:
                self._bounded.mark_read(each.inputs)

    @property
    def ended(self) -> bool:
        return not self._bounded.unread() and not self._streams.unended

    @property
    def want_checkpoint(self) -> bool:
        """Whether the next epoch should carry a checkpoint although none is due."""
        return self._streams.want_checkpoint

    def release(self, durable_epoch: int) -> None:
        """An epoch is over, and a checkpoint holds everything up to ``durable_epoch``."""
        self._streams.release(durable_epoch)

    def store(self, writer: SnapshotWriter, attempt: int) -> UploadResult:
        """Store where everything stands, behind the last epoch that was accepted."""
        try:
            return UploadResult((*self._bounded.snapshots(), *self._streams.snapshots(writer, attempt)))
        except STORING_ERRORS as error:
            return UploadResult.failed(error)

    def close(self) -> None:
        self._streams.close()
