"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.drivers import Place
from holdfast.cli.errors import CommandError


class FormatType(StrEnum):
    CANONICAL = "canonical"
    NATIVE = "native"


def _running_job_ids() -> list[str]:
    """For the completion of shells; errors would end up in the middle of the user's line."""
    try:
        return [job.job_id for record in Place.named(None, None).records() for job in record.jobs]
    except (CommandError, OSError):
        return []


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


def absolute_path(path: str) -> str:
    """A relative path is one of here, wherever the program or the server is. URIs stay as they are."""
    return path if ":" in path.partition("/")[0] else str(Path(path).absolute())
