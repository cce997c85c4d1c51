"""Settings of a session for a while. Several jobs may want some at once, in one session."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from holdfast.spark.internals.jvm import JVM_ERRORS


class _Changes:
    """What is wanted of a session, the latest last, and what its settings were before."""

    def __init__(self) -> None:
        self.wanted: list[Mapping[str, str]] = []
        self.before: dict[str, str | None] = {}


_lock = threading.Lock()
_sessions: WeakKeyDictionary[SparkSession, _Changes] = WeakKeyDictionary()


@contextmanager
def changed_settings(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Put back at the end, even if one of them cannot be set; a setting that others want too when the last of them has
    ended.
    """
    # One that nobody else has, though another may be equal.
    own = dict(settings)
    with _lock:
        changes = _sessions.setdefault(session, _Changes())
        for key in own.keys() - changes.before.keys():
            changes.before[key] = session.conf.get(key, None)
        changes.wanted.append(own)
    try:
        with _lock:
            for key, value in own.items():
                session.conf.set(key, value)
        yield
    finally:
        with _lock:
            changes.wanted = [other for other in changes.wanted if other is not own]
            # An application that is gone has no settings; its own error is the one to see.
            with suppress(*JVM_ERRORS):
                for key in own:
                    _put_back(session, changes, key)


def _put_back(session: SparkSession, changes: _Changes, key: str) -> None:
    others = [wanted[key] for wanted in changes.wanted if key in wanted]
    value = others[-1] if others else changes.before.pop(key)
    if value is None:
        session.conf.unset(key)
    else:
        session.conf.set(key, value)
