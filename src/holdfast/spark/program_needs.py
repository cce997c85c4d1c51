"""What every executor must have before the program can run there."""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark import SparkFiles

from holdfast.runtime.task_files import TaskFiles
from holdfast.spark.program_modules import lacking


@dataclass(frozen=True)
class ProgramNeeds:
    """Modules that its functions are in, and files that were sent. It travels without anything of the program."""

    modules: tuple[str, ...] = ()
    files: TaskFiles = field(default_factory=TaskFiles)
    local_dir: str | None = None

    def lacking(self) -> list[str]:
        """On an executor: modules that cannot be found there when packages are installed and archives unpacked."""
        self.files.make_ready(SparkFiles.getRootDirectory(), self.local_dir)
        return lacking(self.modules)


NO_NEEDS = ProgramNeeds()
