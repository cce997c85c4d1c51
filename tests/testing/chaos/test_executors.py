"""Executors are found through the port of their driver."""

from __future__ import annotations

import subprocess
from pathlib import Path

from holdfast.testing.chaos.executors import executors_of
from holdfast.testing.chaos.processes import Process
from tests.kit.driver import DriverProgram

DRIVER = """
import socket, time
listener = socket.create_server(("127.0.0.1", 0))
print("port", listener.getsockname()[1])
time.sleep(60)
"""

# A script's name is the name of its process.
JAVA = "#!/bin/sh\nread -r line\n"
BACKEND = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


def test_only_executors_that_talk_to_the_driver_are_its(tmp_path: Path) -> None:
    script, java = tmp_path / "driver.py", tmp_path / "java"
    script.write_text(DRIVER)
    java.write_text(JAVA)
    java.chmod(0o755)
    with DriverProgram(script) as driver:
        port = int(driver.wait_for_line(r"port (\d+)").group(1))

        def executor(number: int) -> subprocess.Popen[bytes]:
            url = f"spark://CoarseGrainedScheduler@127.0.0.1:{number}"
            return subprocess.Popen([java, "-cp", "x", BACKEND, "--driver-url", url], stdin=subprocess.PIPE)

        own, other = executor(port), executor(1)
        try:
            assert Process.read(own.pid) is not None
            assert [process.pid for process in executors_of(driver.pid)] == [own.pid]
        finally:
            for process in (own, other):
                process.communicate()
