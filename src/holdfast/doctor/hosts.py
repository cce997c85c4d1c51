"""Runs the probe of hosts, here or in tasks, and reads what it gave."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from holdfast.doctor import host_probe
from holdfast.doctor.facts import Clock, DirectoryFacts, HostFacts, Request, StorageFacts

#: No module has it, so that whoever pickles a function of the probe pickles all of it.
_NO_MODULE = "holdfast_host_probe"


def look_here(request: Request) -> HostFacts:
    return host_facts(host_probe.look(_plain(request)))


def probe_task(request: Request | None, pause: float) -> Callable[[Any], list[dict[str, Any]]]:
    """The function ``host_probe.task`` gives, in such a way that a process without Holdfast can run it."""
    namespace: dict[str, Any] = {"__name__": _NO_MODULE}
    exec(compile(inspect.getsource(host_probe), host_probe.__file__, "exec"), namespace)
    made: Callable[[Any], list[dict[str, Any]]] = namespace["task"](None if request is None else _plain(request), pause)
    return made


def host_facts(seen: Mapping[str, Any], clock: Clock | None = None) -> HostFacts:
    """From what the probe gave."""
    return HostFacts(
        **{
            **seen,
            "directories": tuple(DirectoryFacts(**one) for one in seen["directories"]),
            "storages": tuple(StorageFacts(**one) for one in seen["storages"]),
        },
        clock=clock,
    )


def _plain(request: Request) -> dict[str, Any]:
    return {**asdict(request), "markers": dict(request.markers or {})}
