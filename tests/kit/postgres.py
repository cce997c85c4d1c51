"""A real PostgreSQL server on loopback.

Its programs are those of the host or, where it has none, come from Debian's packages, which are unpacked once into the
virtual environment and not installed. Where that cannot be done, ``server()`` raises ``Unavailable``.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any

from holdfast.testing.chaos import Service
from holdfast.testing.chaos.processes import die_with_parent, wait_until
from tests.kit.unavailable import Unavailable

_DOWNLOAD_SECONDS = 300
_START_SECONDS = 60.0
_USER = "holdfast"
#: The one user who needs a password, and that.
GUARDED, SECRET = "guarded", "s3cr3t-of-the-test"

_ACCESS = f"host all {GUARDED} 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n"
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    # In its directory, so that nothing of it stays when it is killed.
    "dynamic_shared_memory_type": "mmap",
    # Its processes crash, and the host does not.
    "fsync": "off",
    "shared_buffers": "32MB",
}


def _programs() -> Path:
    """The folder of the server's programs."""
    if importlib.util.find_spec("psycopg") is None:
        raise Unavailable("the extra 'postgres' is not installed")
    found = _installed()
    if found is not None:
        return found
    try:
        with (Path(sys.prefix) / ".holdfast-postgres.lock").open("w") as lock:
            # Several test processes ask at once, and one downloads.
            fcntl.flock(lock, fcntl.LOCK_EX)
            return _downloaded(Path(sys.prefix) / "holdfast-postgres")
    except (OSError, LookupError, subprocess.SubprocessError) as cause:
        raise Unavailable(f"there is no PostgreSQL server, and Debian's packages cannot be had ({cause})") from cause


def _installed() -> Path | None:
    folders = [Path("/usr/local/bin"), *sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]
    if shutil.which("pg_config") is not None:
        told = subprocess.run(["pg_config", "--bindir"], capture_output=True, text=True, check=False)
        folders.insert(0, Path(told.stdout.strip()))
    return next((folder for folder in folders if _is_complete(folder)), None)


def _is_complete(folder: Path) -> bool:
    return all((folder / program).exists() for program in ("postgres", "initdb"))


def _downloaded(home: Path) -> Path:
    if not home.exists():
        with tempfile.TemporaryDirectory(dir=home.parent) as directory:
            os.chmod(directory, 0o755)
            _run(["apt-get", "download", *_packages()], directory)
            for package in Path(directory).glob("*.deb"):
                _run(["dpkg", "-x", str(package), "unpacked"], directory)
            Path(directory, "unpacked").rename(home)
    found = next((folder for folder in home.glob("usr/lib/postgresql/*/bin") if _is_complete(folder)), None)
    if found is None:
        raise LookupError(f"{home} holds no server")
    return found


def _packages() -> list[str]:
    """The server, and the libraries that it and its programs link to."""
    [server] = re.findall(r"Depends: (postgresql-\d+)$", _run(["apt-cache", "depends", "postgresql"]), re.MULTILINE)
    number = server.rpartition("-")[2]
    programs = [server, f"postgresql-client-{number}"]
    libraries = re.findall(r"Depends: (lib\S+)$", _run(["apt-cache", "depends", *programs]), re.MULTILINE)
    # LLVM is for compiled queries, and larger than everything else.
    return [*programs, *sorted({name for name in libraries if not name.startswith("libllvm")})]


def _run(command: Sequence[str], directory: str | None = None) -> str:
    done = subprocess.run(
        command, cwd=directory, check=True, timeout=_DOWNLOAD_SECONDS, capture_output=True, text=True
    )
    return done.stdout


class PostgresServer(Service):
    """One server with its data in a directory of its own. It keeps its port and its data over ``kill`` and
    ``start``."""

    name = "database"

    def __init__(self, programs: Path, directory: Path) -> None:
        self._programs = programs
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None
        self._port = _free_port()
        self._initialise()

    def url(self, user: str = _USER, password: str | None = None) -> str:
        secret = "" if password is None else f":{password}"
        return f"postgresql://{user}{secret}@127.0.0.1:{self._port}/postgres"

    def __enter__(self) -> PostgresServer:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.kill()

    def start(self) -> None:
        """To be called by a thread that lives on: the server dies with whoever started it."""
        settings = [f"--{name}={value}" for name, value in {**_SETTINGS, "port": self._port}.items()]
        with (self._directory / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", str(self._data), *settings],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent,
                **self._identity,
            )
        wait_until(self._answers, _START_SECONDS, "an answer of PostgreSQL", interval=0.05)

    def kill(self) -> None:
        """As ``pg_ctl stop -m immediate``: every process of the server ends at once. Data stays."""
        self._end(signal.SIGQUIT)

    def stop(self) -> None:
        """As ``pg_ctl stop -m fast``: clients are sent away, and everything is written."""
        self._end(signal.SIGINT)

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(20)
            self._process = None

    def restart(self) -> None:
        """As ``pg_ctl restart -m immediate``."""
        self.kill()
        self.start()

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement; its rows, if it has any."""
        import psycopg

        with psycopg.connect(self.url(), autocommit=True) as connection:
            cursor = connection.execute(statement)
            return [] if cursor.description is None else cursor.fetchall()

    @property
    def _data(self) -> Path:
        return self._directory / "data"

    def _answers(self) -> bool | None:
        import psycopg

        assert self._process is not None
        if self._process.poll() is not None:
            log = (self._directory / "server.log").read_text(errors="replace")
            raise RuntimeError(f"PostgreSQL ended with {self._process.returncode}:\n{log}")
        try:
            return self.query("SELECT 1") == [(1,)] or None
        except psycopg.OperationalError:
            return None

    def _initialise(self) -> None:
        if os.getuid() == 0:
            os.chown(self._directory, self._identity["user"], self._identity["group"])
        options = ["-U", _USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
        command = [self._programs / "initdb", "-D", str(self._data), *options]
        subprocess.run(command, check=True, timeout=_START_SECONDS, capture_output=True, **self._identity)
        (self._data / "pg_hba.conf").write_text(_ACCESS)

    @cached_property
    def _identity(self) -> dict[str, Any]:
        """Not root, who may not run a server; and the libraries that came with it."""
        libraries = self._programs.parents[2].glob("*-linux-gnu*")
        environment = {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(map(str, libraries))}
        if os.getuid() != 0:
            return {"env": environment}
        nobody = pwd.getpwnam("nobody")
        owner = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        return {"env": environment, "cwd": self._directory, **owner}


@contextmanager
def server() -> Iterator[PostgresServer]:
    """A running server with a directory of its own; nothing of it stays."""
    programs = _programs()
    with tempfile.TemporaryDirectory(prefix="holdfast-postgres-") as directory:
        try:
            made = PostgresServer(programs, Path(directory))
        except (OSError, KeyError, subprocess.SubprocessError) as cause:
            raise Unavailable(f"PostgreSQL in {programs} cannot make a database ({cause})") from cause
        with made as running:
            yield running


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
