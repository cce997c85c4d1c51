"""A real ZooKeeper on loopback, from the jars that PySpark brings."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType

from holdfast.spark.java import ensure_java
from holdfast.testing.chaos.processes import die_with_parent, wait_until
from holdfast.types.settings import ZooKeeperSettings

_MAIN = "org.apache.zookeeper.server.ZooKeeperServerMain"
_TICK_MS = 200
USER = "holdfast"
PASSWORD = "secret"


class ZooKeeperServer:
    """One server with its data in a directory, on a free port that it keeps. As a context manager it is gone at the
    end.
    """

    def __init__(self, directory: Path, secured: bool = False) -> None:
        """``secured``: it also listens at ``secure_quorum``, to clients that show ``certificate`` over TLS, and knows
        the user ``USER`` by SASL.
        """
        self._directory = directory
        self._port = _free_port()
        self._secure_port = _free_port() if secured else None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def quorum(self) -> str:
        return f"127.0.0.1:{self._port}"

    @property
    def secure_quorum(self) -> str:
        return f"127.0.0.1:{self._secure_port}"

    @property
    def certificate(self) -> Path:
        """The certificate of the server, which its clients show too; it vouches for itself."""
        return self._directory / "certificate.pem"

    @property
    def key(self) -> Path:
        return self._directory / "key.pem"

    def _secure(self) -> tuple[str, list[str]]:
        """What makes it so: lines of its configuration, and options of its JVM."""
        make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
        make += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(self.key), "-out", str(self.certificate)]
        subprocess.run(make, check=True, capture_output=True)
        both, jaas = self._directory / "both.pem", self._directory / "jaas.conf"
        both.write_text(self.key.read_text() + self.certificate.read_text())
        module = "org.apache.zookeeper.server.auth.DigestLoginModule"
        jaas.write_text(f'Server {{ {module} required user_{USER}="{PASSWORD}"; }};\n')
        lines = (
            f"secureClientPort={self._secure_port}\nsecureClientPortAddress=127.0.0.1\n"
            "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n"
            f"ssl.keyStore.location={both}\nssl.keyStore.type=PEM\n"
            f"ssl.trustStore.location={self.certificate}\nssl.trustStore.type=PEM\n"
            "ssl.hostnameVerification=false\nssl.clientAuth=need\n"
            "authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider\n"
        )
        return lines, [f"-Djava.security.auth.login.config={jaas}"]

    def settings(self, session_ms: int = 2_000, root: str = "/holdfast") -> ZooKeeperSettings:
        return ZooKeeperSettings(
            self.quorum, root, session_timeout_ms=session_ms, connection_timeout_ms=5_000, retry_wait_ms=100
        )

    def __enter__(self) -> ZooKeeperServer:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.kill()

    def start(self) -> ZooKeeperServer:
        """Start it, again with what it had; returns when it answers."""
        self._directory.mkdir(parents=True, exist_ok=True)
        secured, options = self._secure() if self._secure_port is not None else ("", [])
        configuration = self._directory / "zoo.cfg"
        configuration.write_text(
            f"tickTime={_TICK_MS}\ndataDir={self._directory / 'data'}\nclientPort={self._port}\n"
            "clientPortAddress=127.0.0.1\nadmin.enableServer=false\nmaxClientCnxns=0\n"
            "minSessionTimeout=400\nmaxSessionTimeout=60000\n4lw.commands.whitelist=srvr\n"
            + secured
        )
        java = ensure_java()
        spec = find_spec("pyspark")
        assert spec is not None and spec.origin is not None
        with (self._directory / "zookeeper.log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    str(java.home / "bin" / "java") if java.home is not None else "java",
                    "-Xmx128m",
                    "-XX:+UseSerialGC",
                    *options,
                    "-cp",
                    str(Path(spec.origin).parent / "jars" / "*"),
                    _MAIN,
                    str(configuration),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent,
            )
        wait_until(self._answers, 60.0, f"ZooKeeper on {self.quorum}", interval=0.1)
        return self

    def kill(self) -> None:
        """SIGKILL: what it has acknowledged is on disk."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(20)
            self._process = None

    def restart(self, away: float = 0.0) -> None:
        self.kill()
        time.sleep(away)
        self.start()

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
            raise AssertionError((self._directory / "zookeeper.log").read_text(errors="replace"))
        try:
            with socket.create_connection(("127.0.0.1", self._port), timeout=5) as connection:
                connection.sendall(b"srvr")
                return True if b"Mode: standalone" in connection.recv(4096) else None
        except OSError:
            return None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
