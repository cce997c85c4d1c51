"""``holdfast rescale``: another parallelism for a job that runs."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from holdfast.cli.arguments import Address, AsJson, Checkpoints, JobId, JobsDir, place_of
from holdfast.cli.errors import UsageError
from holdfast.cli.operation_wait import await_operation
from holdfast.cli.printing import WAITING, Output
from holdfast.cli.rest_client import job_path


def rescale(
    job: JobId = None,
    parallelism: Annotated[
        int | None, typer.Option("-p", "--parallelism", min=1, help="Subtasks of operators from now on.")
    ] = None,
    address: Address = None,
    jobs_dir: JobsDir = None,
    checkpoints: Checkpoints = None,
    as_json: AsJson = False,
) -> None:
    """Take a checkpoint of a running job, and let it go on from there with another parallelism."""
    output = Output(as_json)
    if parallelism is None:
        raise UsageError("Missing parallelism. Specify it with -p.")
    place = place_of(jobs_dir, address, checkpoints)
    job_id = place.job_named(job, "Missing JobID. Specify a JobID to rescale a job.")
    client = place.client_for(job_id)
    output.line(f"Rescaling job {job_id} to parallelism {parallelism}.")
    output.line(WAITING)
    details = client.get(job_path(job_id))
    body = requirements_of(details["vertices"], parallelism)
    trigger = client.put(job_path(job_id, "/resource-requirements"), body)["request-id"]
    with output.progress(WAITING):
        done = await_operation(client, job_path(job_id, f"/rescaling/{trigger}"), f"The rescaling of job {job_id}")
    output.line(f"Rescaled job {job_id}. Its parallelism is {done['parallelism']}.")
    output.document({"job-id": job_id, "request-id": trigger, "parallelism": done["parallelism"]})


def requirements_of(vertices: list[dict[str, Any]], parallelism: int) -> dict[str, Any]:
    """Requirements with one parallelism for every vertex."""
    return {vertex["id"]: {"parallelism": {"lowerBound": 1, "upperBound": parallelism}} for vertex in vertices}
