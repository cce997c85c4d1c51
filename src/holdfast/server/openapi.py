"""The OpenAPI description of the server, from its resources."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from holdfast.server.identity import VERSION
from holdfast.server.models_cluster import ErrorMessage
from holdfast.server.resources import RESOURCES, Resource

_PARAMETER = re.compile(r"\{(\w+)\}")
_DESCRIPTIONS = {
    "job_id": "id of a job",
    "vertex_id": "id of a vertex",
    "subtask": "number of a subtask, from 0 on",
    "checkpoint_id": "id of a checkpoint",
    "trigger_id": "id of an operation, as its start answered it",
}
#: What any request may get.
_COMMON_ERRORS = {
    400: "The request is malformed",
    401: "The token is missing or wrong",
    403: "The request comes from another site, or names a directory that it may not",
    408: "The request did not arrive in time",
    413: "The body is too long",
    421: "The server is not known by this name",
}


def describe() -> dict[str, Any]:
    types = [*(r.answer for r in RESOURCES), *(r.body for r in RESOURCES if r.body is not None), ErrorMessage]
    schemas, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    by_type = {repr(kind): schema for kind, schema in zip(types, schemas, strict=True)}
    paths: dict[str, dict[str, Any]] = {}
    for resource in RESOURCES:
        paths.setdefault(resource.path, {})[resource.method.lower()] = _operation(resource, by_type)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Holdfast job server",
            "version": VERSION,
            "description": "Flink's REST resources of jobs, checkpoints and savepoints. All paths work below /v1 too.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "basic": {"type": "http", "scheme": "basic"},
            },
        },
        "security": [{"bearer": []}, {"basic": []}],
    }


def _operation(resource: Resource, schemas: dict[str, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": resource.method.lower() + re.sub(r"\W+", "_", resource.path).rstrip("_"),
        "summary": resource.summary,
        "parameters": [
            *(_path_parameter(name) for name in _PARAMETER.findall(resource.path)),
            *(
                {"name": q.name, "in": "query", "description": q.description, "schema": {"type": "string"}}
                for q in resource.queries
            ),
        ],
        "responses": {str(resource.status): _response("Done", schemas[repr(resource.answer)])},
    }
    for status, text in {**_COMMON_ERRORS, **dict(resource.errors)}.items():
        described["responses"][str(status)] = _response(text, schemas[repr(ErrorMessage)])
    if resource.body is not None:
        described["requestBody"] = {
            "required": resource.body_required,
            "content": {"application/json": {"schema": schemas[repr(resource.body)]}},
        }
    return described


def _path_parameter(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": _DESCRIPTIONS[name],
        "schema": {"type": "string", "minLength": 1},
    }


def _response(text: str, schema: Any) -> dict[str, Any]:
    return {"description": text, "content": {"application/json": {"schema": schema}}}
