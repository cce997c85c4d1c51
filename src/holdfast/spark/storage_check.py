"""The checkpoint directory, tried from every executor before the first epoch of a job."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pyarrow as pa

from holdfast.errors import HoldfastError, StorageError, UnfitExecutorError
from holdfast.spark.anchor import Anchor, executor_identity
from holdfast.storage.check import check_storage, leave_marker, remove_marker

_FOUND = "executor string, failure string"


def check_from_executors(anchor: Anchor, directory: str) -> None:
    """UnfitExecutorError when an executor cannot use the directory, or sees another one under its name."""
    marker = leave_marker(directory)

    def check(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        failure = None
        try:
            check_storage(directory, marker=marker)
        except HoldfastError as error:
            failure = str(error)
        arrays = [pa.array([executor_identity()]), pa.array([failure], pa.string())]
        yield pa.RecordBatch.from_arrays(arrays, names=["executor", "failure"])

    try:
        found = {row.executor: row.failure for row in anchor.table.mapInArrow(check, _FOUND).collect()}
    finally:
        with suppress(StorageError):
            remove_marker(directory, marker)
    failures = {executor: failure for executor, failure in found.items() if failure is not None}
    if failures:
        executor, failure = sorted(failures.items())[0]
        raise UnfitExecutorError(
            f"The checkpoint directory {directory} cannot be used from {len(failures)} of {len(found)} executors. On "
            f"{executor}: {failure}"
        )
