"""Options of what a program brings with it: modules, archives, packages, data files and jars."""

from __future__ import annotations

from typing import Any

from holdfast.common.option_types import MAPS, NAMES, PLACES, TEXT, Option

PYTHON_FILES: Option[tuple[str, ...]] = Option(
    "python.files",
    NAMES,
    (),
    "Modules of the program that executors need, with commas between them: Python files, folders and archives "
    "(`.zip`, `.egg`, `.whl`). A folder that is a package is imported by its name, any other is searched for modules. "
    "`env.add_python_file()` and `holdfast run -pyfs` add to it.",
    default_text="none",
)
PYTHON_ARCHIVES: Option[tuple[str, ...]] = Option(
    "python.archives",
    NAMES,
    (),
    "Archives (`.zip`, `.jar`, `.whl`, `.egg`, `.tar`, `.tar.gz`, `.tgz`), with commas between them, that are unpacked "
    "in the working directory of the program's tasks: into the folder behind `#`, as in `data.zip#data`, else into one "
    "of the archive's name. Modules in them can be imported. `env.add_python_archive()` and `holdfast run -pyarch` add "
    "to it.",
    default_text="none",
)
PYTHON_REQUIREMENTS: Option[str | None] = Option(
    "python.requirements",
    TEXT,
    None,
    "A `requirements.txt` whose packages pip installs once on every host that runs tasks, and behind `#` a folder of "
    "packages (`pip download -d folder`) to install them from, without network. `env.set_python_requirements()` and "
    "`holdfast run -pyreq` set it.",
    default_text="none",
)
PYTHON_EXECUTABLE: Option[str | None] = Option(
    "python.executable",
    TEXT,
    None,
    "The Python that tasks run in: a path on the executors' hosts, or one below the folder of an archive. It is fixed "
    "when the Spark application starts, as `spark.pyspark.python` is. `env.set_python_executable()` and `holdfast run "
    "-pyexec` set it.",
    default_text="Spark's, else that of the driver",
)
CACHED_FILES: Option[tuple[dict[str, str], ...]] = Option(
    "pipeline.cached-files",
    MAPS,
    (),
    "Files that functions find with `runtime_context.get_distributed_cache().get_file(name)`: "
    "`name:rates,path:/data/rates.csv;name:tool,path:/opt/tool,executable:true`. `env.register_cached_file()` adds to "
    "it.",
    default_text="none",
)
JARS: Option[tuple[str, ...]] = Option(
    "pipeline.jars",
    PLACES,
    (),
    "Jars, with semicolons between them, that the Spark application is started with, as with `spark.jars`. "
    "`env.add_jars()` adds to it. Connectors are part of Holdfast and need none.",
    default_text="none",
)
CLASSPATHS: Option[tuple[str, ...]] = Option(
    "pipeline.classpaths",
    PLACES,
    (),
    "Jars or folders, with semicolons between them, that are on every host under the same path, for the class path of "
    "driver and executors. `env.add_classpaths()` adds to it.",
    default_text="none",
)

DEPENDENCIES: tuple[Option[Any], ...] = (
    PYTHON_FILES,
    PYTHON_ARCHIVES,
    PYTHON_REQUIREMENTS,
    PYTHON_EXECUTABLE,
    CACHED_FILES,
    JARS,
    CLASSPATHS,
)

#: Parts a path from what belongs to it.
PARAMETER = "#"
