"""``holdfast run`` and ``holdfast info``."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.arguments import AsJson, JobsDir, absolute_path
from holdfast.cli.drivers import HostPlace
from holdfast.cli.errors import CommandError, UsageError
from holdfast.cli.printing import Output
from holdfast.cli.program import run_program
from holdfast.common import dependency_options, options, rest_options
from holdfast.common.configuration import Configuration
from holdfast.common.run_settings import PLAN_VARIABLE, RUN_VARIABLE, SUBMITTED, encode_run_settings
from holdfast.server.jobs_directory import JobsDirectory, new_driver_name
from holdfast.server.settings import DRIVER_VARIABLE, JOBS_DIRECTORY_VARIABLE
from holdfast.types.dependencies import import_path

_POLL_SECONDS = 0.1
_SHOWN_LOG_LINES = 30


class ClaimModeName(StrEnum):
    NO_CLAIM = "no_claim"
    CLAIM = "claim"
    LEGACY = "legacy"


FromSavepoint = Annotated[
    str | None, typer.Option("-s", "--fromSavepoint", metavar="PATH", help="Checkpoint or savepoint to start from.")
]
AllowNonRestored = Annotated[
    bool, typer.Option("-n", "--allowNonRestoredState", help="Start although operators of the snapshot are missing.")
]
AllowPickle = Annotated[
    bool, typer.Option("--allow-pickle", help="Start although state of the snapshot is pickled, which can run code.")
]
Claim = Annotated[
    ClaimModeName | None,
    typer.Option("-cm", "--claimMode", "-rm", "--restoreMode", case_sensitive=False, help="Who owns that snapshot."),
]
Parallelism = Annotated[int | None, typer.Option("-p", "--parallelism", min=1, help="Subtasks of operators.")]
Settings = Annotated[list[str] | None, typer.Option("-D", metavar="KEY=VALUE", help="A setting; may be repeated.")]
PythonFile = Annotated[str | None, typer.Option("-py", "--python", metavar="FILE", help="The program.")]
PythonFiles = Annotated[
    str | None,
    typer.Option("-pyfs", "--pyFiles", metavar="FILES", help="Modules for the executors, with commas between them."),
]
PythonArchives = Annotated[
    str | None,
    typer.Option(
        "-pyarch", "--pyArchives", metavar="FILES", help="Archives for the executors, as archive or archive#folder."
    ),
]
PythonRequirements = Annotated[
    str | None,
    typer.Option(
        "-pyreq", "--pyRequirements", metavar="FILE", help="Packages for the executors, as file or file#cache."
    ),
]
PythonExecutable = Annotated[
    str | None, typer.Option("-pyexec", "--pyExecutable", metavar="PYTHON", help="The Python of the executors.")
]
Arguments = Annotated[
    list[str] | None, typer.Argument(metavar="[PROGRAM] [ARGUMENTS]...", show_default=False, help="Passed on as is.")
]


def run(
    arguments: Arguments = None,
    from_savepoint: FromSavepoint = None,
    allow_non_restored: AllowNonRestored = False,
    allow_pickle: AllowPickle = False,
    claim: Claim = None,
    parallelism: Parallelism = None,
    detached: Annotated[bool, typer.Option("-d", "--detached", help="Return when the job is submitted.")] = False,
    settings: Settings = None,
    python: PythonFile = None,
    python_files: PythonFiles = None,
    python_archives: PythonArchives = None,
    python_requirements: PythonRequirements = None,
    python_executable: PythonExecutable = None,
    jobs_dir: JobsDir = None,
    as_json: AsJson = False,
) -> None:
    """Run a program.

    Settings of the command line win over the configuration file, and those of the program over both.
    """
    program, rest = program_of(python, arguments or [])
    told = told_settings(settings or [], parallelism)
    if from_savepoint is not None:
        told.set_string(options.RECOVERY_PATH.key, absolute_path(from_savepoint))
    modules = _tell_dependencies(told, python_files, python_archives, python_requirements, python_executable)
    if allow_non_restored:
        told.set_string(options.RECOVERY_IGNORE_UNCLAIMED.key, "true")
    if allow_pickle:
        told.set_string(options.STATE_ALLOW_PICKLE.key, "true")
    if claim is not None:
        told.set_string(options.RECOVERY_CLAIM_MODE.key, claim.name)
    if jobs_dir is not None:
        told.set_string(rest_options.JOBS_DIRECTORY.key, str(Path(jobs_dir).absolute()))
    variables = {RUN_VARIABLE: encode_run_settings(told.to_dict())}
    if detached:
        searched = [*map(import_path, map(Path, modules)), *filter(None, [os.environ.get("PYTHONPATH")])]
        variables |= {"PYTHONPATH": os.pathsep.join(searched)} if modules else {}
        _run_detached(program, rest, variables, HostPlace.named(jobs_dir, None), Output(as_json))
    else:
        os.environ.update(variables)
        sys.path[:0] = map(import_path, map(Path, modules))
        run_program(program, rest)


def _tell_dependencies(
    told: Configuration, files: str | None, archives: str | None, requirements: str | None, executable: str | None
) -> list[str]:
    """What the command line has of them, with absolute paths. The modules, which the driver imports too."""
    modules = [absolute_path(file) for file in dependency_options.PYTHON_FILES.parse(files or "")]
    # Behind "#" stands the folder that the archive becomes in tasks.
    packed = [_absolute_archive(each) for each in dependency_options.PYTHON_ARCHIVES.parse(archives or "")]
    for option, paths in ((dependency_options.PYTHON_FILES, modules), (dependency_options.PYTHON_ARCHIVES, packed)):
        if paths:
            told.set_string(option.key, option.kind.show(paths))
    if requirements is not None:
        path, mark, cache = requirements.partition(dependency_options.PARAMETER)
        given = absolute_path(path) + mark + (absolute_path(cache) if cache else "")
        told.set_string(dependency_options.PYTHON_REQUIREMENTS.key, given)
    if executable is not None:
        told.set_string(dependency_options.PYTHON_EXECUTABLE.key, executable)
    return modules


def _absolute_archive(told: str) -> str:
    path, mark, target = told.partition(dependency_options.PARAMETER)
    return absolute_path(path) + mark + target


def info(
    arguments: Arguments = None, parallelism: Parallelism = None, settings: Settings = None, python: PythonFile = None
) -> None:
    """Print the plan of a program as JSON. The program runs up to its execute(), and nothing is started."""
    program, rest = program_of(python, arguments or [])
    os.environ[PLAN_VARIABLE] = "1"
    os.environ[RUN_VARIABLE] = encode_run_settings(told_settings(settings or [], parallelism).to_dict())
    run_program(program, rest)
    raise CommandError(f"The program {program} ended without a call of execute(): there is no plan.")


def program_of(python: str | None, arguments: list[str]) -> tuple[str, list[str]]:
    if python is None and not arguments:
        raise UsageError("The program is missing. Specify a Python file to run.")
    program, rest = (python, arguments) if python is not None else (arguments[0], arguments[1:])
    if program.startswith("-"):
        raise UsageError(f"Unrecognized option: {program}")
    if not Path(program).is_file():
        raise CommandError(f"The program {program} does not exist; expected a Python file.")
    return program, rest


def told_settings(settings: list[str], parallelism: int | None) -> Configuration:
    told = Configuration()
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not key or not equals:
            raise UsageError(f"-D has '{setting}'; expected KEY=VALUE.")
        told.set_string(key.strip(), value)
    if parallelism is not None:
        told.set_string(options.PARALLELISM.key, str(parallelism))
    return told


def _run_detached(program: str, rest: list[str], variables: dict[str, str], place: HostPlace, output: Output) -> None:
    directory, driver = JobsDirectory(place.directory), new_driver_name()
    directory.prepare()
    directory.drop_old_logs()
    log = directory.log_file(driver)
    environment = {
        **os.environ,
        **variables,
        DRIVER_VARIABLE: driver,
        JOBS_DIRECTORY_VARIABLE: str(place.directory),
        "PYTHONUNBUFFERED": "1",
    }
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(descriptor, "ab") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "holdfast.cli.program", program, *rest],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
    with output.progress("Waiting for the job to be submitted..."):
        job_id = _submitted_job(process, log)
    output.line(f"{SUBMITTED}{job_id}")
    output.document({"job-id": job_id, "pid": process.pid, "log": str(log)})


def _submitted_job(process: subprocess.Popen[bytes], log: Path) -> str:
    """The id that the driver printed."""
    while True:
        ended = process.poll()
        text = log.read_text(errors="replace")
        for line in text.splitlines():
            if line.startswith(SUBMITTED):
                return line.removeprefix(SUBMITTED).strip()
        if ended is not None:
            tail = "\n".join(text.splitlines()[-_SHOWN_LOG_LINES:])
            raise CommandError(f"The program ended with code {ended} and submitted no job. The end of {log}:\n{tail}")
        time.sleep(_POLL_SECONDS)
