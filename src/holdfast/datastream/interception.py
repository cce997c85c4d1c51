"""What a program does in the place of running its job: for commands that take it up to its ``execute()``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from holdfast.common.configuration import Configuration
from holdfast.graph.stream_graph import StreamGraph

#: Gets the program and its configuration. It raises SystemExit, or the program goes on and runs its job.
Interception = Callable[[StreamGraph, Configuration], None]

_interception: Interception | None = None


def intercept(graph: StreamGraph, configuration: Configuration) -> None:
    if _interception is not None:
        _interception(graph, configuration)


@contextmanager
def intercepting(act: Interception) -> Iterator[None]:
    """Programs of this process do ``act`` when they are executed, while the block runs."""
    global _interception
    before, _interception = _interception, act
    try:
        yield
    finally:
        _interception = before
