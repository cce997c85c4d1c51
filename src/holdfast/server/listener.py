"""The thread that serves HTTP."""

from __future__ import annotations

import errno
import logging
import socket
import threading
import time

import uvicorn
from starlette.types import ASGIApp

from holdfast.errors import ConfigurationError
from holdfast.server.settings import ListenSettings

logger = logging.getLogger(__name__)

_START_SECONDS = 30.0
_STOP_SECONDS = 5.0


class Listener:
    """Listens from the moment it is made until ``close``."""

    def __init__(self, app: ASGIApp, settings: ListenSettings) -> None:
        self._socket = _bind(settings)
        self.port: int = self._socket.getsockname()[1]
        scheme = "https" if settings.tls else "http"
        host = settings.advertised if settings.advertised != "0.0.0.0" else socket.gethostname()
        self.url = f"{scheme}://{f'[{host}]' if ':' in host else host}:{self.port}"
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                lifespan="off",
                http="h11",
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


def _bind(settings: ListenSettings) -> socket.socket:
    """A socket on the first port that is free."""
    family = socket.AF_INET6 if ":" in settings.address else socket.AF_INET
    refused: OSError | None = None
    for port in settings.ports:
        bound = socket.socket(family, socket.SOCK_STREAM)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((settings.address, port))
            bound.listen(128)
            return bound
        except OSError as error:
            bound.close()
            refused = error
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                break
    ports = f"{settings.ports[0]}" if len(settings.ports) == 1 else f"{settings.ports[0]} to {settings.ports[-1]}"
    raise ConfigurationError(
        f"The job server cannot listen on {settings.address}, port {ports}: {refused}. Set 'rest.bind-port' to a free "
        "port, to a range, or to 0 for any"
    )
