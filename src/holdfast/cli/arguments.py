"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.checkpoint_place import CheckpointPlace
from holdfast.cli.drivers import HostPlace
from holdfast.cli.errors import CommandError, UsageError
from holdfast.cli.job_places import Place


class FormatType(StrEnum):
    CANONICAL = "canonical"
    NATIVE = "native"


def _running_job_ids() -> list[str]:
    """For the completion of shells; errors would end up in the middle of the user's line."""
    try:
        return [job.job_id for record in HostPlace.named(None, None).records() for job in record.jobs]
    except (CommandError, OSError):
        return []


def _or_of_all_verbs(context: typer.Context, told: str | None) -> str | None:
    """It may stand before the verb, too."""
    of_all: str | None = context.find_root().params.get("checkpoints")
    return told if told is not None else of_all


Checkpoints = Annotated[
    str | None,
    typer.Option(
        "-c",
        "--checkpoints",
        metavar="URI",
        help="Checkpoint directory beside which drivers of jobs left their addresses.",
        callback=_or_of_all_verbs,
    ),
]
Address = Annotated[
    str | None, typer.Option("-m", "--jobmanager", metavar="HOST:PORT", help="The job server to ask, as an address.")
]
JobsDir = Annotated[
    str | None, typer.Option("--jobs-dir", metavar="DIRECTORY", help="Directory that tells which drivers live.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
JobId = Annotated[str | None, typer.Argument(metavar="JOB", autocompletion=_running_job_ids, show_default=False)]
Format = Annotated[
    FormatType, typer.Option("-type", "--type", case_sensitive=False, help="What the savepoint is written in.")
]
Detached = Annotated[bool, typer.Option("-detached", "--detached", help="Do not wait for the savepoint.")]


def place_of(jobs_dir: str | None, address: str | None, checkpoints: str | None) -> Place:
    """Where a command looks for jobs."""
    if checkpoints is None:
        return HostPlace.named(jobs_dir, address)
    if jobs_dir is not None:
        raise UsageError("Both -c and --jobs-dir are given; expected one of them to say where jobs are looked for.")
    return CheckpointPlace(absolute_path(checkpoints), address)


def absolute_path(path: str) -> str:
    """A relative path is one of here, wherever the program or the server is. URIs stay as they are."""
    return path if ":" in path.partition("/")[0] else str(Path(path).absolute())
