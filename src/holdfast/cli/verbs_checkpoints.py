"""``holdfast checkpoints``: what became of the last checkpoints of a job."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table

from holdfast.cli.arguments import Address, AsJson, Checkpoints, JobId, JobsDir, place_of
from holdfast.cli.errors import CommandError
from holdfast.cli.printing import Output
from holdfast.cli.rest_client import RestClient, job_path

_COLOURS = {"COMPLETED": "green", "FAILED": "red", "IN_PROGRESS": "yellow"}


def checkpoints(
    job: JobId = None,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Stay, and show what comes.")] = False,
    interval: Annotated[float, typer.Option("--interval", min=0.1, help="Seconds between two looks.")] = 1.0,
    address: Address = None,
    jobs_dir: JobsDir = None,
    directory: Checkpoints = None,
    as_json: AsJson = False,
) -> None:
    """Show the checkpoints and savepoints of a job with state, size and durations."""
    place = place_of(jobs_dir, address, directory)
    job_id = place.job_named(job, "Missing JobID. Specify a JobID to show its checkpoints.")
    if follow and not as_json:
        _follow(place.client_for(job_id), job_id, interval)
        return
    statistics = place.checkpoint_statistics(job_id)
    output = Output(as_json)
    output.document(statistics)
    if not as_json:
        Console().print(table(job_id, statistics))


def table(job_id: str, statistics: dict[str, Any]) -> Table:
    """One line for each checkpoint, the newest first."""
    counts = statistics["counts"]
    title = f"Checkpoints of job {job_id}"
    caption = ", ".join(f"{counts[name]} {name.replace('_', ' ')}" for name in ("completed", "in_progress", "failed"))
    shown = Table(title=title, caption=f"{caption}; {counts['restored']} restored")
    for name in ("ID", "Type", "Status", "Triggered"):
        shown.add_column(name)
    for name in ("Duration", "Written", "State", "Acknowledged"):
        shown.add_column(name, justify="right")
    shown.add_column("Path or failure", overflow="fold")
    for entry in statistics["history"]:
        colour = _COLOURS[entry["status"]]
        shown.add_row(
            str(entry["id"]),
            entry["checkpoint_type"],
            f"[{colour}]{entry['status']}[/]",
            time.strftime("%H:%M:%S", time.localtime(entry["trigger_timestamp"] / 1_000)),
            f"{entry['end_to_end_duration']:,} ms",
            size_text(entry["checkpointed_size"]),
            size_text(entry["state_size"]),
            f"{entry['num_acknowledged_subtasks']}/{entry['num_subtasks']}",
            entry.get("external_path") or entry.get("failure_message") or "",
        )
    return shown


def size_text(size: int) -> str:
    for factor, unit in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} B"


def _follow(client: RestClient, job_id: str, interval: float) -> None:
    """Until the job ends, or its driver, or the user has seen enough."""
    with Live(console=Console(), auto_refresh=False) as live:
        try:
            while True:
                live.update(table(job_id, client.get(job_path(job_id, "/checkpoints"))), refresh=True)
                if client.get(job_path(job_id, "/status"))["status"] in ("FINISHED", "CANCELED", "FAILED"):
                    return
                time.sleep(interval)
        except KeyboardInterrupt:
            return
        except CommandError:
            live.console.print(f"The driver of job {job_id} has ended.")
