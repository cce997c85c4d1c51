"""Which class writes the files of a streaming query's checkpoint directory.

By default every file is written through Hadoop's newer interface, which starts a process for each of them. The older
one has plain files and renames, which do for a directory that is never resumed.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from holdfast.spark.internals.jvm import has_class

_STREAMING = "org.apache.spark.sql.execution.streaming."
_NAME = "FileSystemBasedCheckpointFileManager"
#: Where versions of Spark have it, the newest first.
_PLACES = (f"{_STREAMING}checkpointing.{_NAME}", f"{_STREAMING}{_NAME}")


def plain_file_manager(session: SparkSession) -> str | None:
    """The name of the class; None where this Spark has none."""
    return next((place for place in _PLACES if has_class(session, place)), None)


def probe(session: SparkSession) -> str | None:
    return None if plain_file_manager(session) else f"there is no class {_NAME}"
