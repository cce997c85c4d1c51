"""What of a program's dependencies a Spark application is started with: its Python, its jars, its class path."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from pyspark import SparkFiles
from pyspark.sql import SparkSession

from holdfast.errors import ProgramError
from holdfast.spark.executors import is_local
from holdfast.types.dependencies import DependencySettings, on_driver, without_scheme

_PYTHON = "spark.pyspark.python"
_JARS = "spark.jars"
_CLASS_PATHS = ("spark.driver.extraClassPath", "spark.executor.extraClassPath")


def application_settings(dependencies: DependencySettings, told: Mapping[str, str], submitted: bool) -> dict[str, str]:
    """The settings of an application that is started for the program, which has ``told`` settings of its own. Where the
    program was ``submitted`` the JVM runs already, with what it has.
    """
    found: dict[str, str] = {}
    if dependencies.executable is not None:
        found[_PYTHON] = dependencies.executable
    if submitted:
        return found
    if dependencies.jars:
        for jar in dependencies.jars:
            on_driver(jar, "add_jars() or pipeline.jars", "a jar. Connectors are part of Holdfast and need none")
        found[_JARS] = ",".join(_merged(told.get(_JARS, "").split(","), dependencies.jars))
    if dependencies.classpaths:
        for key in _CLASS_PATHS:
            found[key] = os.pathsep.join(_merged(told.get(key, "").split(os.pathsep), _paths(dependencies.classpaths)))
    return found


def _merged(first: Iterable[str], more: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(filter(None, (*first, *more))))


def _paths(classpaths: Sequence[str]) -> list[str]:
    paths = [without_scheme(path) for path in classpaths]
    for path in paths:
        if "://" in path:
            raise ProgramError(
                f"'{path}' of add_classpaths() or pipeline.classpaths is no path; expected a jar or a folder that is "
                "on every host. Jars of other places are for add_jars()."
            )
    return paths


def check_application(session: SparkSession, dependencies: DependencySettings) -> None:
    """ProgramError where an application that ran already lacks jars: it takes no more of them for its driver."""
    told = dict(session.sparkContext.getConf().getAll())
    loaded = {_name(jar) for jar in told.get(_JARS, "").split(",")}
    missing = [jar for jar in dependencies.jars if _name(jar) not in loaded]
    if missing:
        raise _too_late("jars", missing, f"'{_JARS}' (--jars of spark-submit)")
    found = set(told.get(_CLASS_PATHS[0], "").split(os.pathsep))
    absent = [path for path in _paths(dependencies.classpaths) if path not in found]
    if absent:
        raise _too_late("class paths", absent, " and ".join(f"'{key}'" for key in _CLASS_PATHS))


def _name(jar: str) -> str:
    # Spark may have brought it to another place.
    return jar.rstrip("/").rpartition("/")[2]


def _too_late(what: str, missing: list[str], setting: str) -> ProgramError:
    return ProgramError(
        f"The Spark application runs already, and was started without {what} that the program adds: "
        f"{', '.join(missing)}. Give them to whoever starts the session, as {setting}, or let Holdfast start it: then "
        "no session may be active when the program is executed. Connectors are part of Holdfast and need no jars."
    )


def choose_python(session: SparkSession, dependencies: DependencySettings) -> None:
    """Let tasks run in the program's Python, which may have come with an archive. ProgramError where an application
    that ran already has another one.
    """
    wanted = dependencies.executable
    if wanted is None:
        return
    context = session.sparkContext
    place = _below_archive(wanted, dependencies) if is_local(session) else wanted
    if context.pythonExec == wanted:
        # An executor unpacks archives where it runs; the driver, whose tasks these are, in a folder of its own.
        context.pythonExec = place
    if context.pythonExec != place:
        raise ProgramError(
            f"The Spark application runs its tasks in {context.pythonExec}, and the program asks for {wanted} with "
            f"set_python_executable() or python.executable. Give that to whoever starts the session, as '{_PYTHON}' "
            "or PYSPARK_PYTHON, or let Holdfast start it: then no session may be active when the program is executed."
        )


def _below_archive(executable: str, dependencies: DependencySettings) -> str:
    target = executable.removeprefix("./").partition("/")[0]
    if target not in {archive.target for archive in dependencies.archives}:
        return executable
    return os.path.join(SparkFiles.getRootDirectory(), executable.removeprefix("./"))
