"""``python s3_server.py PORT``: moto's server of S3, on loopback, which heeds conditions of writes at any time."""

from __future__ import annotations

import sys
import threading
from typing import Any

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple


class OneWriteAtATime:
    """Lets one request write at a time: moto lets others in between its look for an object and the write."""

    def __init__(self, application: Any) -> None:
        self._application = application
        self._writing = threading.Lock()

    def __call__(self, environment: Any, start_response: Any) -> Any:
        if environment["REQUEST_METHOD"] not in ("PUT", "POST"):
            return self._application(environment, start_response)
        with self._writing:
            return list(self._application(environment, start_response))


if __name__ == "__main__":
    served = OneWriteAtATime(DomainDispatcherApplication(create_backend_app))
    run_simple("127.0.0.1", int(sys.argv[1]), served, threaded=True)
