"""The emulator of Google Cloud Storage, which by itself does not heed the condition that a name is new."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from gcp_storage_emulator import server
from gcp_storage_emulator.__main__ import main
from gcp_storage_emulator.exceptions import NotFound
from gcp_storage_emulator.handlers import objects

_insert = objects.insert


def insert(request: Any, response: Any, storage: Any, *arguments: Any, **options: Any) -> None:
    """Requests come one after the other: nothing happens between the look and the write."""
    if request.query.get("ifGenerationMatch") == ["0"] and _exists(request, storage):
        response.status = HTTPStatus.PRECONDITION_FAILED
    else:
        _insert(request, response, storage, *arguments, **options)


def _exists(request: Any, storage: Any) -> bool:
    name = request.query["name"][0] if "name" in request.query else request.data["meta"]["name"]
    try:
        storage.get_file_obj(request.params["bucket_name"], name)
    except NotFound:
        return False
    return True


if __name__ == "__main__":
    for _, methods in server.HANDLERS:
        for method, handler in methods.items():
            if handler is _insert:
                methods[method] = insert
    main()
