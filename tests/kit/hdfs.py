"""A real HDFS on loopback: Hadoop's own mini cluster, one name node and one data node in a JVM."""

from __future__ import annotations

import json
import signal
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType

from holdfast.spark.java import ensure_java
from holdfast.testing.chaos.processes import die_with_parent, wait_until
from tests.kit.hdfs_jars import hdfs_jars
from tests.kit.ports import free_port

_MAIN = "org.apache.hadoop.test.MiniDFSClusterManager"
_START_SECONDS = 120.0
_PROPERTIES = """<configuration>
<property><name>fs.defaultFS</name><value>hdfs://localhost:{rpc}</value></property>
<property><name>dfs.namenode.http-address</name><value>0.0.0.0:{http}</value></property>
</configuration>
"""


class HdfsCluster:
    """A cluster with its data in a directory and a free HTTP port. As a context manager it is gone at the end."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._http_port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.rpc_port = 0

    @property
    def http_address(self) -> str:
        return f"localhost:{self._http_port}"

    def uri(self, path: str = "") -> str:
        """The URI by the HTTP port; nothing else has to be known."""
        return f"webhdfs://{self.http_address}/{path}"

    def rpc_uri(self, path: str = "") -> str:
        """As Hadoop's own programs spell it; where it listens for HTTP is in ``configuration_dir``."""
        return f"hdfs://localhost:{self.rpc_port}/{path}"

    @property
    def configuration_dir(self) -> Path:
        return self._directory / "conf"

    def __enter__(self) -> HdfsCluster:
        jars = hdfs_jars()
        self.configuration_dir.mkdir(parents=True)
        details = self._directory / "details.json"
        java = ensure_java()
        command = [str(java.home / "bin" / "java") if java.home is not None else "java", "-Xmx256m"]
        command += ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", f"-Dtest.build.data={self._directory / 'data'}"]
        command += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", f"{jars}/*", _MAIN]
        command += ["-format", "-datanodes", "1", "-httpport", str(self._http_port)]
        command += ["-writeDetails", str(details)]
        with (self._directory / "hdfs.log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._directory,
                preexec_fn=die_with_parent,
            )
        wait_until(self._answers, _START_SECONDS, "an answer of HDFS", interval=0.1)
        self.rpc_port = json.loads(details.read_text())["namenode_port"]
        site = self.configuration_dir / "core-site.xml"
        site.write_text(_PROPERTIES.format(rpc=self.rpc_port, http=self._http_port))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait(20)

    def pause(self) -> None:
        """SIGSTOP: it keeps its connections and answers nothing."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def _answers(self) -> bool | None:
        assert self._process is not None
        if self._process.poll() is not None:
            raise AssertionError((self._directory / "hdfs.log").read_text(errors="replace"))
        if not (self._directory / "details.json").exists():
            return None
        try:
            with urllib.request.urlopen(f"http://{self.http_address}/webhdfs/v1/?op=GETFILESTATUS", timeout=20):
                return True
        except (urllib.error.URLError, OSError):
            return None
