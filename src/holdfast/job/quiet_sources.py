"""Whether the sources of a job have nothing to read, as far as the driver can see it without an epoch."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from holdfast.runtime.source import Source, SourceFunction, SourceWatch

logger = logging.getLogger(__name__)


@dataclass
class _Watched:
    watch: SourceWatch
    seen: Hashable
    changed_at: int


class QuietSources:
    """The sources without an end, for one attempt. Others have more until they end, which their tasks tell."""

    def __init__(self, sources: Sequence[Source | SourceFunction], clock: Callable[[], int]) -> None:
        self._clock = clock
        watches = [source.watch() for source in sources]
        #: Whether all of them can be seen from the driver.
        self.visible = None not in watches
        self._watched = [_Watched(watch, self, 0) for watch in watches if watch is not None]

    def had_nothing_since(self, began: int) -> bool:
        """Whether an epoch that began at this time, and read nothing, would read nothing if it were run again. All
        sources have to be visible.
        """
        # All of them are looked at: what one shows is not to wait until the others are quiet.
        return all([self._is_quiet(one, began) for one in self._watched])

    def _is_quiet(self, one: _Watched, began: int) -> bool:
        try:
            seen = one.watch.look()
        except Exception as error:
            logger.debug("A source could not be looked at from the driver: %s", error)
            # It equals nothing that a watch gives, so the next look that succeeds is a change too.
            seen = object()
        if seen != one.seen:
            one.seen, one.changed_at = seen, self._clock()
        return began >= one.changed_at + one.watch.settles_ms

    def close(self) -> None:
        for one in self._watched:
            with suppress(Exception):
                one.watch.close()
