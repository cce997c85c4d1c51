"""Requests about one job."""

from __future__ import annotations

from holdfast.server import models_job as models
from holdfast.server import views_job
from holdfast.server.archive import ArchivedJob
from holdfast.server.requests import Call, RestError
from holdfast.server.views_job import job_ended

_SHOWN_EXCEPTIONS = 20


def details(call: Call) -> models.JobDetails:
    return views_job.details(call.job())


def status(call: Call) -> models.JobStatusInfo:
    return models.JobStatusInfo(call.job().gateway.master.history.status.name)


def plan(call: Call) -> models.JobPlanInfo:
    return views_job.plan(call.job())


def configuration(call: Call) -> models.JobConfiguration:
    return views_job.configuration(call.job())


def vertex(call: Call) -> models.VertexDetails:
    job = call.job()
    return views_job.vertex_details(job, call.vertex(job))


def accumulators(call: Call) -> models.JobAccumulators:
    return views_job.accumulators(call.job())


def exceptions(call: Call) -> models.JobExceptions:
    told = call.query.get("maxExceptions", str(_SHOWN_EXCEPTIONS))
    if not (told.isascii() and told.isdigit()) or len(told) > 9:
        raise RestError(400, f"The query parameter 'maxExceptions' is '{told}'; expected a whole number")
    labels: dict[str, str] = {}
    for part in filter(None, call.query.get("failureLabelFilter", "").split(",")):
        label, colon, value = part.partition(":")
        if not label or not colon:
            raise RestError(400, f"The query parameter 'failureLabelFilter' has '{part}'; expected 'label:value'")
        labels[label] = value
    return views_job.exceptions(call.job(), int(told), labels)


def cancel(call: Call) -> models.Empty:
    mode = call.query.get("mode", "cancel").lower()
    if mode == "stop":
        raise RestError(
            308,
            "The termination mode 'stop' is not one of this address. Send POST /jobs/:jobid/stop, which stops the job "
            "with a savepoint",
        )
    if mode != "cancel":
        raise RestError(400, f"The query parameter 'mode' is '{mode}'; expected 'cancel'")
    job = call.any_job()
    if isinstance(job, ArchivedJob):
        ended, state = True, job.status
    else:
        history = job.gateway.master.history
        ended, state = job_ended(history), history.status.name
    if ended and state != "CANCELED":
        raise RestError(409, f"Job {call.job_id} was not cancelled: it has ended before, and is {state}")
    if not isinstance(job, ArchivedJob) and not ended:
        job.gateway.cancel()
    return models.Empty()
