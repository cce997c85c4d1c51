"""An asyncio loop in a thread of its own, beside the thread that runs a task."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

_log = logging.getLogger(__name__)
#: How long what is cancelled may take to end, in seconds.
_PATIENCE = 5.0

T = TypeVar("T")


class LoopThread:
    """The loop runs from the beginning to ``close``, also while nobody waits for it: connections stay alive, and
    answers are read as they come.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run it in the loop, and wait for its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def close(self) -> None:
        """Cancel what still runs in the loop, and end the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(2 * _PATIENCE)
        if self._thread.is_alive():
            _log.warning("%s: a call blocks the asyncio loop and cannot be ended; its thread stays", self._name)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            self._loop.run_until_complete(_end_all())
        finally:
            self._loop.close()


async def _end_all() -> None:
    """Cancel all other tasks of the loop. One that does not listen to it is not waited for."""
    loop = asyncio.get_running_loop()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        ended, _ = await asyncio.wait(others, timeout=_PATIENCE)
        for task in ended:
            # Looked at, so that asyncio does not report what nobody waits for any more.
            _ = task.cancelled() or task.exception()
    await loop.shutdown_asyncgens()
