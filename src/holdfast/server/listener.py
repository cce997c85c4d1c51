"""The thread that serves HTTP."""

from __future__ import annotations

import logging
import socket
import threading
import time

import uvicorn
from starlette.types import ASGIApp

from holdfast.errors import ConfigurationError
from holdfast.server.binding import bind
from holdfast.server.gate import Gate
from holdfast.server.protocol import guarded_protocol
from holdfast.server.settings import ListenSettings

logger = logging.getLogger(__name__)

_START_SECONDS = 30.0
_STOP_SECONDS = 5.0


class Listener:
    """Listens from the moment it is made until ``close``."""

    def __init__(self, app: ASGIApp, settings: ListenSettings) -> None:
        self._socket = Gate(bind(settings), settings.connections)
        self.port: int = self._socket.getsockname()[1]
        self._settings = settings
        self.url = self.url_for(socket.gethostname())
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                lifespan="off",
                # Another event loop may accept connections without asking the gate.
                loop="asyncio",
                http=guarded_protocol(self._socket, settings.request_timeout_ms / 1_000),
                ws="none",
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=1,
                ssl_certfile=settings.tls.certificate if settings.tls else None,
                ssl_keyfile=settings.tls.key if settings.tls else None,
            )
        )
        self._thread = threading.Thread(target=self._serve, name="holdfast-rest", daemon=True)
        self._thread.start()
        self._await_start()

    def url_for(self, host_name: str) -> str:
        """The address for others; ``host_name`` is one of this host, where the settings name none."""
        settings = self._settings
        host = host_name if settings.everywhere and settings.advertised == settings.address else settings.advertised
        scheme = "https" if settings.tls else "http"
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{self.port}"

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join(_STOP_SECONDS)
        self._socket.close()

    def _serve(self) -> None:
        try:
            self._server.run(sockets=[self._socket])
        except Exception:
            logger.exception("The job server ended")

    def _await_start(self) -> None:
        end = time.monotonic() + _START_SECONDS
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > end:
                self._socket.close()
                raise ConfigurationError(f"The job server could not be started at {self.url}; the log says why")
            time.sleep(0.01)
