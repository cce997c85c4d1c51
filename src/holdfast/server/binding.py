"""The port of a job server."""

from __future__ import annotations

import errno
import socket

from holdfast.errors import ConfigurationError
from holdfast.server.settings import ListenSettings


def bind(settings: ListenSettings) -> socket.socket:
    """A socket on the first port that is free. ConfigurationError when none is."""
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
