"""One session with ZooKeeper, and what is known of it at each moment."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import (
    AuthFailedError,
    ConnectionClosedError,
    ConnectionLoss,
    OperationTimeoutError,
    SessionExpiredError,
)
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.states import KeeperState
from kazoo.retry import KazooRetry

from holdfast.checkpoint.zookeeper.client import new_client
from holdfast.errors import LeadershipLostError
from holdfast.types.settings import ZooKeeperSettings

_log = logging.getLogger(__name__)
_LOOK_SECONDS = 0.05
#: What became of the request is not known.
_DOUBT = (ConnectionLoss, OperationTimeoutError)
_GONE = (SessionExpiredError, ConnectionClosedError, AuthFailedError)

#: A server that is stopped at this moment looks the same: it is tried again.
_NOT_ACCEPTED = "ZooKeeper has not accepted the credentials of this driver (holdfast.zookeeper.sasl-mechanism)"

#: A session must outlive a few tries to connect.
_TRIES_PER_SESSION = 3

#: Starts a request and gives its future answer.
Request = Callable[[KazooClient], Any]


class _ImpatientHandler(SequentialThreadingHandler):  # type: ignore[misc]  # it has no types
    """Gives a connection up on which nothing is heard for some time. The client itself would wait for as long as a
    session lasts, and a server that is just starting may leave a connection without an answer.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds

    def select(self, read: Any, write: Any, failed: Any, timeout: float | None = None) -> Any:
        return super().select(read, write, failed, self._seconds if timeout is None else min(timeout, self._seconds))

    def create_connection(self, *arguments: Any, timeout: float, **options: Any) -> Any:
        return super().create_connection(*arguments, timeout=min(timeout, self._seconds), **options)


class ZooKeeperSession:
    """One session of a ZooKeeper client. It is not renewed: whoever loses it opens another.

    It is lost when ZooKeeper says so, and also when ZooKeeper could not be reached for as long as a session lasts:
    by then it may have been given to somebody else.
    """

    def __init__(self, settings: ZooKeeperSettings) -> None:
        self._settings = settings
        self._seconds = settings.session_timeout_ms / 1000
        self._changed = threading.Lock()
        self._connected = False
        self._apart_since: float | None = None
        self._loss: str | None = None
        wait = settings.retry_wait_ms / 1000
        patience = min(settings.connection_timeout_ms / 1000, self._seconds / _TRIES_PER_SESSION)
        self._client = new_client(
            settings,
            handler=_ImpatientHandler(patience),
            connection_retry=KazooRetry(max_tries=-1, delay=min(0.1, wait), backoff=2, max_delay=max(wait, 0.1)),
        )
        self._client.add_listener(self._on_change)

    def open(self, pause: Callable[[float], None]) -> None:
        """Wait for the first connection through ``pause``, for as long as that takes. LeadershipLostError when the
        client has given up, as it does when its credentials are not accepted.
        """
        self._client.start_async()
        warned, began = False, time.monotonic()
        while not self._connected:
            pause(_LOOK_SECONDS)
            _ = self.in_doubt
            if not warned and time.monotonic() - began > self._settings.connection_timeout_ms / 1000:
                warned = True
                _log.warning("ZooKeeper at %s cannot be reached; trying again until it can", self._settings.quorum)

    def close(self) -> None:
        """End the session, and with it what belongs to it. Where ZooKeeper cannot be reached this takes a try to
        connect, and what was asked before may still be heard.
        """
        self.declare_lost("it was closed")
        self._client.stop()
        self._client.close()

    @property
    def in_doubt(self) -> bool:
        """Whether ZooKeeper cannot be reached for now; LeadershipLostError when the session is lost."""
        with self._changed:
            if self._apart_since is not None and time.monotonic() - self._apart_since >= self._seconds:
                self._loss = self._loss or f"ZooKeeper could not be reached for {self._seconds:g} s"
            if self._loss is not None:
                raise LeadershipLostError(
                    f"the session with ZooKeeper at {self._settings.quorum} is lost: {self._loss}"
                )
            return self._apart_since is not None

    def declare_lost(self, reason: str) -> None:
        with self._changed:
            self._loss = self._loss or reason

    def ask(self, request: Request) -> Any:
        """The answer to a request that may be sent twice. A connection that is lost is waited for; LeadershipLostError
        when it does not come back in time, and then the request may have been heard, or not.
        """
        while True:
            while self.in_doubt:
                time.sleep(_LOOK_SECONDS)
            answer = request(self._client)
            try:
                while not answer.ready():
                    answer.wait(_LOOK_SECONDS)
                    _ = self.in_doubt
                return answer.get()
            except _DOUBT:
                # The listener may hear of it a moment later than this thread.
                time.sleep(_LOOK_SECONDS)
            except _GONE as error:
                self.declare_lost(type(error).__name__)

    def _on_change(self, state: str) -> None:
        """Called in the client's own thread."""
        with self._changed:
            if state == KazooState.CONNECTED:
                if self._apart_since is not None and time.monotonic() - self._apart_since >= self._seconds:
                    self._loss = self._loss or f"ZooKeeper could not be reached for {self._seconds:g} s"
                self._connected, self._apart_since = True, None
            elif state == KazooState.LOST:
                refused = self._client.client_state == KeeperState.AUTH_FAILED
                self._loss = self._loss or (_NOT_ACCEPTED if refused else "it has expired")
            elif self._connected and self._apart_since is None:
                self._apart_since = time.monotonic()
                _log.warning("ZooKeeper at %s cannot be reached for now: checkpoints wait", self._settings.quorum)
