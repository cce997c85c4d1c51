"""Which class writes the files of a streaming query's checkpoint directory.

By default every file is written through Hadoop's newer interface, which starts a process for each of them. The older
one has plain files and renames, which do for a directory that is never resumed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from holdfast.spark.internals.jvm import has_class
from holdfast.spark.run_folder import run_folder

_STREAMING = "org.apache.spark.sql.execution.streaming."
_NAME = "FileSystemBasedCheckpointFileManager"
#: Where versions of Spark have it, the newest first.
_PLACES = (f"{_STREAMING}checkpointing.{_NAME}", f"{_STREAMING}{_NAME}")


def plain_file_manager(session: SparkSession) -> str | None:
    """The name of the class; None where this Spark has none."""
    return next((place for place in _PLACES if has_class(session, place)), None)


def probe(session: SparkSession) -> str | None:
    """Makes one as a query does, and asks it for a folder that is there."""
    name = plain_file_manager(session)
    if name is None:
        return f"there is no class {_NAME}"
    context: Any = session.sparkContext
    java = context._jvm
    folder = java.org.apache.hadoop.fs.Path(Path(run_folder()).as_uri())
    manager = getattr(java, name)(folder, context._jsc.hadoopConfiguration())
    return None if manager.exists(folder) else f"{_NAME} does not find the folder {folder.toString()}"
