"""The ASGI application: resources, the page, the description and the metrics, behind the guards."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from importlib import resources as package_files
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp

from holdfast.errors import HoldfastError
from holdfast.server.access_tokens import AccessTokens
from holdfast.server.directories import ForbiddenDirectoryError
from holdfast.server.guards import BodyGuard, DriverName, HostGuard, TokenGuard
from holdfast.server.models_cluster import ErrorMessage
from holdfast.server.openapi import describe
from holdfast.server.prometheus import CONTENT_TYPE, exposition
from holdfast.server.requests import Call, FromHistory, RestError, ServerState
from holdfast.server.resources import RESOURCES, Resource, fields_of, type_name

logger = logging.getLogger(__name__)

_PAGE_PATHS = ("/", "/index.html", "/favicon.ico")
_PAGE_HEADERS = {
    # The page is one file: it loads nothing, and sends nothing to anybody else.
    "content-security-policy": "default-src 'none'; connect-src 'self'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}

Endpoint = Callable[[Request], Awaitable[Response]]


def build_app(state: ServerState, tokens: AccessTokens, driver: str) -> ASGIApp:
    """``driver`` is the name that every answer bears."""
    routes = [*_routes(state), Route("/openapi.json", _description()), Route("/metrics", _metrics(state))]
    inner = Starlette(
        routes=[Route(path, _page) for path in _PAGE_PATHS[:2]]
        + [Route(_PAGE_PATHS[2], _no_icon), Mount("/v1", routes=routes), *routes],
        exception_handlers={HTTPException: _http_error, Exception: _unexpected_error},
    )
    settings = state.settings
    guarded: ASGIApp = BodyGuard(inner, settings.max_body)
    guarded = TokenGuard(guarded, tokens, frozenset(_PAGE_PATHS))
    return DriverName(HostGuard(guarded, settings.listen), driver)


def _routes(state: ServerState) -> list[Route]:
    """One route per path: with one per method, a path that has another method would answer 404 instead of 405."""
    by_path: dict[str, dict[str, Resource]] = {}
    for resource in RESOURCES:
        by_path.setdefault(resource.path, {})[resource.method] = resource
    return [Route(path, _endpoint(state, ways), methods=list(ways)) for path, ways in by_path.items()]


def _endpoint(state: ServerState, ways: dict[str, Resource]) -> Endpoint:
    async def answer(request: Request) -> Response:
        resource = ways["GET" if request.method == "HEAD" else request.method]
        try:
            body = await _body(request, resource)
            call = Call(state, _subpath(request), request.path_params, request.query_params, body)
            return _json(await run_in_threadpool(resource.handler, call), resource.status)
        except FromHistory as found:
            return _json(found.answer)
        except RestError as error:
            return _error(error.status, str(error))
        except ForbiddenDirectoryError as error:
            return _error(403, str(error))
        except HoldfastError as error:
            return _error(400, str(error))

    return answer


async def _body(request: Request, resource: Resource) -> Any:
    if resource.body is None:
        return None
    try:
        raw = await request.body()
    except ClientDisconnect:
        raise RestError(400, "The body ended before its announced length") from None
    if not raw.strip() and not resource.body_required:
        return None
    try:
        return msgspec.json.decode(raw, type=resource.body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        fields = ", ".join(fields_of(resource.body))
        raise RestError(400, f"The body is not {type_name(resource.body)}: {error}. Its fields are {fields}") from None


def _subpath(request: Request) -> str:
    """The part of the path behind the job's id."""
    job_id = request.path_params.get("job_id")
    if job_id is None:
        return ""
    _, slash, rest = request.url.path.partition("/jobs/")[2].partition("/")
    return slash + rest


def _description() -> Endpoint:
    described = msgspec.json.encode(describe())

    async def answer(_: Request) -> Response:
        return Response(described, media_type="application/json")

    return answer


def _metrics(state: ServerState) -> Endpoint:
    async def answer(_: Request) -> Response:
        return Response(await run_in_threadpool(exposition, state.registry), media_type=CONTENT_TYPE)

    return answer


async def _page(_: Request) -> Response:
    page = package_files.files("holdfast.server").joinpath("page.html").read_bytes()
    return Response(page, media_type="text/html; charset=utf-8", headers=_PAGE_HEADERS)


async def _no_icon(_: Request) -> Response:
    return Response(status_code=204)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    said = "Not found" if error.status_code == 404 else str(error.detail)
    answer = _error(error.status_code, f"{said}: {request.method} {request.url.path}")
    answer.headers.update(error.headers or {})
    return answer


async def _unexpected_error(request: Request, error: Exception) -> Response:
    logger.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return _error(500, f"Internal server error: {type(error).__name__}: {error}")


def _json(answer: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(answer), status, media_type="application/json")


def _error(status: int, message: str) -> Response:
    return _json(ErrorMessage([message]), status)
