"""Looks at the host and the Python that it runs in.

Executors get the source of this module and not its name: whether they have Holdfast is what is to be found. So it
imports nothing but the standard library, and the rest only where it is tried.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import pwd
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

#: What tasks need, beside Holdfast itself and PySpark, whose versions stand in the modules.
PACKAGES = ("pyarrow", "numpy", "pandas", "lmdb", "cloudpickle", "msgspec", "xxhash", "mmh3", "pyyaml")
#: What a task imports first.
TASK_MODULE = "holdfast.spark.level_task"
_STORAGE_SECONDS = 10.0


def look(request: dict[str, Any]) -> dict[str, Any]:
    """The fields of ``HostFacts``, as plain values. ``request`` has those of ``Request``."""
    failure = import_failure(TASK_MODULE)
    return {
        "host": socket.gethostname(),
        # Python workers are forked by a process of their executor.
        "process": os.getppid(),
        "python": platform.python_version(),
        "executable": sys.executable,
        "user": user_name(os.getuid()),
        "packages": packages(request["packages"]),
        "import_failure": failure,
        "directories": directories(request, failure is None),
        "storages": [] if failure else [try_storage(uri, request["markers"]) for uri in request["storages"]],
    }


def import_failure(module: str) -> str | None:
    try:
        importlib.import_module(module)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def packages(of_settings: Iterable[str]) -> dict[str, str | None]:
    return {
        "holdfast": version_of_module("holdfast"),
        "pyspark": version_of_module("pyspark"),
        **{name: version_of_package(name) for name in (*PACKAGES, *of_settings)},
    }


def version_of_module(name: str) -> str | None:
    """What is not installed and comes with the job has a version nowhere else."""
    try:
        return str(importlib.import_module(name).__version__)
    except ImportError:
        return None


def version_of_package(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def directories(request: dict[str, Any], has_holdfast: bool) -> list[dict[str, Any]]:
    """Workers are told Spark's directories by their executor, down to the one of its block manager."""
    told = os.environ.get("SPARK_LOCAL_DIRS") or request["spark_directories"] or tempfile.gettempdir()
    found = [directory(path.partition("/blockmgr-")[0], "spark.local.dir") for path in told.split(",")]
    if has_holdfast:
        from holdfast.runtime.local_files import local_root

        state = str(local_root(request["state_directory"]))
        found.insert(0, private_directory(state))
    return found


def private_directory(path: str) -> dict[str, Any]:
    """One that tasks refuse unless it is this user's alone."""
    from holdfast.storage.private_files import why_not_private

    found = directory(path, "holdfast.state.local-dir")
    refusal = why_not_private(Path(path)) if os.path.lexists(path) else None
    return found if refusal is None else {**found, "failure": f"{refusal}, and tasks refuse it"}


def directory(path: str, purpose: str) -> dict[str, Any]:
    """What can be done with a directory; before it is made, with the nearest above it. Nothing is left behind."""
    present = os.path.abspath(path)
    while not os.path.exists(present):
        present = os.path.dirname(present)
    usage = shutil.disk_usage(present)
    try:
        with tempfile.TemporaryFile(dir=present):
            failure = None
    except OSError as error:
        failure = str(error)
    owner = user_name(os.stat(present).st_uid) if present == os.path.abspath(path) else ""
    sizes = {"free": usage.free, "total": usage.total}
    return {"path": path, "purpose": purpose, "owner": owner, "failure": failure, **sizes}


def user_name(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def try_storage(uri: str, markers: dict[str, str]) -> dict[str, Any]:
    from holdfast.errors import HoldfastError
    from holdfast.storage.check import check_storage

    try:
        report = check_storage(uri, _STORAGE_SECONDS, markers.get(uri))
        reached = access(uri)
    except HoldfastError as error:
        return {"uri": uri, "seconds": 0.0, "exclusive_create": False, "access": None, "failure": str(error)}
    seconds, exclusive = report.seconds, report.exclusive_create
    return {"uri": uri, "seconds": seconds, "exclusive_create": exclusive, "access": reached, "failure": None}


def access(uri: str) -> str | None:
    if uri.partition(":")[0] not in ("hdfs", "webhdfs", "swebhdfs"):
        return None
    from holdfast.storage import hdfs

    found = hdfs.access(uri)
    return f"{found.kind.value}: {found.reason}"


def task(request: dict[str, Any] | None, pause: float) -> Any:
    """A function for one partition: the time, and what ``look`` gives if it is asked for. Others go on beside it while
    it pauses, so that no executor has two tasks while another has none.
    """

    def run(_: Any) -> list[dict[str, Any]]:
        seen = {"time": time.time(), "host": socket.gethostname(), "process": os.getppid()}
        facts = {} if request is None else look(request)
        time.sleep(pause)
        return [{**seen, "facts": facts}]

    return run
