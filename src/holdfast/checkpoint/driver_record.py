"""Which process a driver is, in a form that another driver can read, and judge whether that process is gone."""

from __future__ import annotations

import os
import secrets
import socket
import time
from enum import Enum
from pathlib import Path

import msgspec

from holdfast.state.epoch_log import boot_id


class DriverFate(Enum):
    ALIVE = "ALIVE"
    DEAD = "DEAD"
    #: On another host, or in a container of this one: nothing here can tell.
    UNKNOWN = "UNKNOWN"


class DriverRecord(msgspec.Struct, frozen=True):
    """One driver. What a system does not tell is empty, and then nothing is concluded from it."""

    pid: int
    host: str
    since: str
    #: Different in every record: two locks of one process are two.
    token: str = ""
    boot: str = ""
    machine: str = ""
    pid_namespace: str = ""
    started: str = ""
    #: Whether it renews a lease, which tells others whether it lives.
    leased: bool = False

    @classmethod
    def of_this_process(cls, leased: bool = False) -> DriverRecord:
        return cls(
            pid=os.getpid(),
            host=socket.gethostname(),
            since=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            token=secrets.token_hex(8),
            boot=boot_id(),
            machine=_machine(),
            pid_namespace=_pid_namespace(),
            started=_start_of(os.getpid()) or "",
            leased=leased,
        )

    @staticmethod
    def decode(data: bytes) -> DriverRecord | None:
        """None for anything that is not a record."""
        try:
            return msgspec.json.decode(data, type=DriverRecord)
        except (msgspec.MsgspecError, ValueError):
            return None

    def encode(self) -> bytes:
        return msgspec.json.encode(self)

    def describe(self) -> str:
        return f"process {self.pid} on {self.host} since {self.since}"

    def on_this_host(self) -> bool:
        """Whether it ran where this process does. A container has the kernel of its host and a name of its own."""
        return (self.host, self.boot) == (socket.gethostname(), boot_id())

    def fate(self) -> DriverFate:
        """DEAD only when it is known: this host was started anew since then, or has no such process any more."""
        here = DriverRecord.of_this_process()
        if not self.boot or not self.started:
            return DriverFate.UNKNOWN
        if self.boot != here.boot:
            same_host = bool(self.machine) and (self.machine, self.host) == (here.machine, here.host)
            return DriverFate.DEAD if same_host and here.boot else DriverFate.UNKNOWN
        if self.pid_namespace != here.pid_namespace:
            return DriverFate.UNKNOWN
        return DriverFate.ALIVE if _start_of(self.pid) == self.started else DriverFate.DEAD


def _start_of(pid: int) -> str | None:
    """When a process started, in ticks since the host did; None when there is none, or only what is left of one."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The name in parentheses may hold spaces; the fields behind it do not.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in ("Z", "X") else fields[19]


def _machine() -> str:
    try:
        return Path("/etc/machine-id").read_text().strip()
    except OSError:
        return ""


def _pid_namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""
