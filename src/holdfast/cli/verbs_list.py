"""``holdfast list``."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from holdfast.cli.arguments import Address, AsJson, Checkpoints, JobsDir, place_of
from holdfast.cli.printing import WAITING, Output

_ENDED = ("FINISHED", "CANCELED", "FAILED")
_RUNNING_TITLE = "------------------ Running/Restarting Jobs -------------------"
_SCHEDULED_TITLE = "----------------------- Scheduled Jobs -----------------------"
_TERMINATED_TITLE = "---------------------- Terminated Jobs -----------------------"
_FOOTER = "-" * 62


def list_jobs(
    running: Annotated[bool, typer.Option("-r", "--running", help="Jobs that run or restart.")] = False,
    scheduled: Annotated[bool, typer.Option("-s", "--scheduled", help="Jobs that have not begun.")] = False,
    everything: Annotated[bool, typer.Option("-a", "--all", help="All jobs, those that ended too.")] = False,
    application: Annotated[
        str | None,
        typer.Option("-yid", "--yarnapplicationId", metavar="APPLICATION", help="Jobs of one Spark application."),
    ] = None,
    address: Address = None,
    jobs_dir: JobsDir = None,
    checkpoints: Checkpoints = None,
    as_json: AsJson = False,
) -> None:
    """List running and scheduled jobs."""
    output = Output(as_json)
    output.line(WAITING)
    if not (running or scheduled or everything):
        running = scheduled = True
    found = place_of(jobs_dir, address, checkpoints).jobs(application)
    jobs = sorted(found, key=lambda job: (job["start-time"], job["jid"]))
    active = [job for job in jobs if job["state"] not in (*_ENDED, "CREATED", "INITIALIZING")]
    waiting = [job for job in jobs if job["state"] in ("CREATED", "INITIALIZING")]
    ended = [job for job in jobs if job["state"] in _ENDED]
    shown: list[dict[str, Any]] = []
    if running or everything:
        shown += active
        _print(output, active, _RUNNING_TITLE, "No running jobs.")
    if scheduled or everything:
        shown += waiting
        _print(output, waiting, _SCHEDULED_TITLE, "No scheduled jobs.")
    if everything:
        shown += ended
        _print(output, ended, _TERMINATED_TITLE, None)
    output.document({"jobs": shown})


def _print(output: Output, jobs: list[dict[str, Any]], title: str, without: str | None) -> None:
    if not jobs:
        if without is not None:
            output.line(without)
        return
    output.line(title)
    for job in jobs:
        began = time.strftime("%d.%m.%Y %H:%M:%S", time.localtime(job["start-time"] / 1_000))
        output.line(f"{began} : {job['jid']} : {job['name']} ({job['state']})")
    output.line(_FOOTER)
