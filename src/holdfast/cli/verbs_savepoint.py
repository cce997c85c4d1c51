"""``holdfast savepoint``, ``stop``, ``cancel`` and ``checkpoint``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from holdfast.checkpoint.savepoint import dispose_savepoint
from holdfast.cli.arguments import (
    Address,
    AsJson,
    Checkpoints,
    Detached,
    Format,
    FormatType,
    JobId,
    JobsDir,
    absolute_path,
    place_of,
)
from holdfast.cli.errors import UsageError
from holdfast.cli.job_places import Place
from holdfast.cli.operation_wait import await_operation
from holdfast.cli.printing import WAITING, Output
from holdfast.cli.rest_client import RestClient, job_path


def savepoint(
    job: JobId = None,
    directory: Annotated[str | None, typer.Argument(metavar="DIRECTORY", show_default=False)] = None,
    format_type: Format = FormatType.CANONICAL,
    detached: Detached = False,
    dispose: Annotated[
        str | None, typer.Option("-d", "--dispose", metavar="PATH", help="Delete the savepoint at PATH.")
    ] = None,
    address: Address = None,
    jobs_dir: JobsDir = None,
    checkpoints: Checkpoints = None,
    as_json: AsJson = False,
) -> None:
    """Trigger a savepoint of a running job, or dispose of one."""
    output = Output(as_json)
    place = place_of(jobs_dir, address, checkpoints)
    if dispose is not None:
        _dispose(place, dispose, output)
        return
    job_id = place.job_named(job, "Missing JobID. Specify a Job ID to trigger a savepoint.")
    client = place.client_for(job_id)
    output.line(f"Triggering savepoint for job {job_id}.")
    output.line(WAITING)
    body = _body("target-directory", directory, {"cancel-job": False, "formatType": format_type.name})
    _follow_savepoint(client, job_id, "savepoints", body, detached, output)


def stop(
    job: JobId = None,
    directory: Annotated[
        str | None, typer.Option("-p", "--savepointPath", metavar="DIRECTORY", help="Where the savepoint goes.")
    ] = None,
    drain: Annotated[
        bool, typer.Option("-d", "--drain", help="Let event time come to its end first; not meant for resuming.")
    ] = False,
    format_type: Format = FormatType.CANONICAL,
    detached: Detached = False,
    address: Address = None,
    jobs_dir: JobsDir = None,
    checkpoints: Checkpoints = None,
    as_json: AsJson = False,
) -> None:
    """Stop a job with a savepoint."""
    output = Output(as_json)
    place = place_of(jobs_dir, address, checkpoints)
    job_id = place.job_named(job, "Missing JobID. Specify a JobID to stop a job.")
    client = place.client_for(job_id)
    doing = "Draining" if drain else "Suspending"
    output.line(f'{doing} job "{job_id}" with a {format_type.name} savepoint.')
    output.line(f"Triggering stop-with-savepoint for job {job_id}.")
    output.line(WAITING)
    body = _body("targetDirectory", directory, {"drain": drain, "formatType": format_type.name})
    _follow_savepoint(client, job_id, "stop", body, detached, output)


def cancel(
    names: Annotated[list[str] | None, typer.Argument(metavar="JOB", show_default=False)] = None,
    with_savepoint: Annotated[
        bool,
        typer.Option("-s", "--withSavepoint", help="Take a savepoint first: -s [DIRECTORY] JOB. Deprecated, use stop."),
    ] = False,
    address: Address = None,
    jobs_dir: JobsDir = None,
    checkpoints: Checkpoints = None,
    as_json: AsJson = False,
) -> None:
    """Cancel a job."""
    output = Output(as_json)
    place = place_of(jobs_dir, address, checkpoints)
    directory, job = _directory_and_job(names or [], with_savepoint)
    job_id = place.job_named(job, "Missing JobID. Specify a JobID to cancel a job.")
    client = place.client_for(job_id)
    if not with_savepoint:
        output.line(f"Cancelling job {job_id}.")
        client.patch(job_path(job_id, "?mode=cancel"))
        output.line(f"Cancelled job {job_id}.")
        output.document({"job-id": job_id})
        return
    output.line(
        "DEPRECATION WARNING: Cancelling a job with savepoint is deprecated. Use \"stop\" instead."
    )
    target = directory or "default savepoint directory"
    output.line(f"Cancelling job {job_id} with {FormatType.CANONICAL.name} savepoint to {target}.")
    body = _body("target-directory", directory, {"cancel-job": True, "formatType": FormatType.CANONICAL.name})
    trigger = client.post(job_path(job_id, "/savepoints"), body)["request-id"]
    with output.progress(WAITING):
        done = await_operation(client, job_path(job_id, f"/savepoints/{trigger}"), f"The savepoint of job {job_id}")
    output.line(f"Cancelled job {job_id}. Savepoint stored in {done['location']}.")
    output.document({"job-id": job_id, "request-id": trigger, "location": done["location"]})


def checkpoint(
    job: JobId = None,
    full: Annotated[bool, typer.Option("-full", "--full", help="Write all state, not only what changed.")] = False,
    address: Address = None,
    jobs_dir: JobsDir = None,
    checkpoints: Checkpoints = None,
    as_json: AsJson = False,
) -> None:
    """Trigger a checkpoint of a running job."""
    output = Output(as_json)
    place = place_of(jobs_dir, address, checkpoints)
    job_id = place.job_named(job, "Missing JobID. Specify a Job ID to manipulate checkpoint.")
    client = place.client_for(job_id)
    kind = "FULL" if full else "CONFIGURED"
    output.line(f"Triggering checkpoint for job {job_id}.")
    output.line(WAITING)
    trigger = client.post(job_path(job_id, "/checkpoints"), {"checkpointType": kind})["request-id"]
    with output.progress(WAITING):
        done = await_operation(client, job_path(job_id, f"/checkpoints/{trigger}"), f"The checkpoint of job {job_id}")
    number = done["checkpointId"]
    output.line(f"Checkpoint{'(FULL)' if full else ''} {number} for job {job_id} completed.")
    output.line("You can resume your program from this checkpoint with the run command.")
    output.document({"job-id": job_id, "request-id": trigger, "checkpoint-id": number})


def _follow_savepoint(
    client: RestClient, job_id: str, verb: str, body: dict[str, Any], detached: bool, output: Output
) -> None:
    trigger = client.post(job_path(job_id, f"/{verb}"), body)["request-id"]
    if detached:
        output.line(f"Successfully trigger manual savepoint, triggerId: {trigger}")
        output.document({"job-id": job_id, "request-id": trigger})
        return
    with output.progress(WAITING):
        done = await_operation(client, job_path(job_id, f"/savepoints/{trigger}"), f"The savepoint of job {job_id}")
    output.line(f"Savepoint completed. Path: {done['location']}")
    pickled = done.get("pickled", [])
    for line in pickled:
        output.line(f"WARNING: {line}")
    if verb == "savepoints":
        output.line("You can resume your program from this savepoint with the run command.")
    output.document({"job-id": job_id, "request-id": trigger, "location": done["location"], "pickled": pickled})


def _dispose(place: Place, path: str, output: Output) -> None:
    output.line(f"Disposing savepoint '{path}'.")
    output.line(WAITING)
    client = place.client_at_address()
    if client is None:
        # It is the user's: no driver is needed for it.
        dispose_savepoint(path)
    else:
        trigger = client.post("/savepoint-disposal", {"savepoint-path": absolute_path(path)})["request-id"]
        with output.progress(WAITING):
            await_operation(client, f"/savepoint-disposal/{trigger}", f"The disposal of {path}")
    output.line(f"Savepoint '{path}' disposed.")
    output.document({"savepoint-path": path})


def _directory_and_job(names: list[str], with_savepoint: bool) -> tuple[str | None, str | None]:
    """``-s [directory] job``: the job comes last."""
    if len(names) > (2 if with_savepoint else 1):
        raise UsageError(f"Too many arguments: {' '.join(names)}. Expected one job to cancel.")
    return (names[0] if len(names) > 1 else None), (names[-1] if names else None)


def _body(field: str, directory: str | None, others: dict[str, Any]) -> dict[str, Any]:
    """The body of a request. One without a directory leaves it to the job's own setting."""
    return others if directory is None else {field: absolute_path(directory), **others}
