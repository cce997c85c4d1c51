"""An emulator of Google Cloud Storage on loopback, in a process of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from holdfast.testing.chaos.processes import die_with_parent, wait_until
from tests.kit.ports import free_port

_START_SECONDS = 60.0
_BUCKET = "bucket"
_SERVER = Path(__file__).with_name("gcs_server.py")


@contextmanager
def gcs_bucket(directory: Path) -> Iterator[str]:
    """The URI of its one bucket, which this process, and those that it starts, can reach meanwhile."""
    port = free_port()
    command = [sys.executable, str(_SERVER), "start", "--host=127.0.0.1", f"--port={port}", "--in-memory"]
    with (directory / "gcs.log").open("ab") as log:
        process = subprocess.Popen(
            [*command, f"--default-bucket={_BUCKET}"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            preexec_fn=die_with_parent,
        )

    def answers() -> bool | None:
        if process.poll() is not None:
            raise AssertionError((directory / "gcs.log").read_text(errors="replace"))
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
            return True
        except OSError:
            return None

    try:
        wait_until(answers, _START_SECONDS, "an answer of the emulator", interval=0.1)
        with patch.dict(os.environ, {"CLOUD_STORAGE_EMULATOR_ENDPOINT": f"http://127.0.0.1:{port}"}):
            yield f"gs://anonymous@{_BUCKET}"
    finally:
        process.kill()
        process.wait(20)
