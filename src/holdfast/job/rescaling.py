"""Another parallelism for a running job: asked for by anybody, carried out behind a checkpoint."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass

from holdfast.errors import CheckpointError, HoldfastError
from holdfast.job.job import Job


@dataclass(frozen=True)
class Rescaling:
    """``job`` is planned with the other parallelism. ``outcome`` is told that parallelism when an attempt with it
    begins.
    """

    job: Job
    outcome: Future[int]

    @property
    def parallelism(self) -> int:
        return self.job.parallelism

    def succeed(self) -> None:
        self.outcome.set_result(self.parallelism)

    def fail(self, error: HoldfastError) -> None:
        self.outcome.set_exception(error)

    def fail_at_checkpoint(self, present: int, cause: BaseException | None) -> None:
        """The checkpoint that it was to go on from failed, and the job goes on with parallelism ``present``."""
        self.fail(
            CheckpointError(
                f"The job was not rescaled to {self.parallelism} and goes on with parallelism {present}, as the "
                f"checkpoint failed behind which it was to be rescaled. Mend what this says and ask again: {cause}"
            )
        )
