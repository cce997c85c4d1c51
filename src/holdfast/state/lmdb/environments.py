"""The LMDB environments that this process has open: LMDB allows one per directory and process.

Stores of one directory, and views of it that are pinned, share their environment by counting; the last one closes it,
in whichever thread. A forked child cannot use what it inherited: it closes its copies, which leaves the parent's
untouched, and opens its own. Those of which the parent has pinned a view it does not touch, nor can it open them: the
end of its copy would be the end of the parent's view.
"""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path
from typing import Any
from weakref import ReferenceType, finalize

import lmdb

from holdfast.storage.private_files import FILE_MODE

DATABASES = 3
DATA_FILE = "data.mdb"
#: With less left, a write of LMDB's, which is of many pages at once, may have failed for want of space.
_FULL_BYTES = 1 << 20


class Environment:
    """An open environment with its sub-databases: ``data``, ``epochs`` (records by epoch) and ``meta`` (the stamp)."""

    def __init__(self, path: str, map_size: int) -> None:
        self.path = path
        self.references = 0
        self.process = os.getpid()
        # Crash safety against a killed process comes from the page cache; the boot id in the stamp covers the rest.
        # New pages are wiped: what this process had in its memory before must not go into images of the file.
        self.handle = lmdb.open(
            path,
            map_size=map_size,
            mode=FILE_MODE,
            max_dbs=DATABASES,
            subdir=True,
            lock=True,
            sync=False,
            metasync=False,
        )
        self.handle.reader_check()
        self.data = self.handle.open_db(b"data")
        self.epochs = self.handle.open_db(b"epochs")
        self.meta = self.handle.open_db(b"meta")
        #: The store with the one write transaction; a thread that asks for a second one would wait for itself.
        self.writer: ReferenceType[object] | None = None
        #: Transactions of pinned views.
        self.pinned: set[Any] = set()


class Pin:
    """The last commit of an environment, to be read from any thread until ``end``, also when its stores are closed.

    Pages of it are not used again meanwhile: the file grows by what is written.
    """

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.txn: Any = environment.handle.begin(db=environment.data)
        with _lock:
            environment.references += 1
            environment.pinned.add(self.txn)
        #: May be called more than once. Who forgets it is helped out.
        self.end = finalize(self, _unpin, environment, self.txn)
        self.end.atexit = False


def _unpin(environment: Environment, txn: Any) -> None:
    if environment.process != os.getpid():
        return
    txn.abort()
    environment.pinned.discard(txn)
    release(environment)


_environments: dict[str, Environment] = {}
_inherited: list[Environment] = []
_lock = threading.RLock()


def _new_lock() -> None:
    """In a forked child, where nobody else would give the lock back."""
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_new_lock)


def disk_advice(directory: Path) -> str:
    """What to do when LMDB cannot write: it reports a full disk as an error of the device."""
    free = shutil.disk_usage(directory).free
    if free < _FULL_BYTES:
        return f"Its disk is full, with {free} bytes left: free space, or move 'holdfast.state.local-dir' elsewhere."
    return f"{free} bytes are left on its disk: check the disk."


def exists(directory: Path) -> bool:
    return (directory / DATA_FILE).exists()


def acquire(directory: Path, map_size: int) -> Environment:
    """Open the environment of ``directory``, or share the open one; release it once for every call."""
    with _lock:
        _leave_to_the_parent()
        directory.mkdir(parents=True, exist_ok=True)
        path = str(directory.resolve())
        environment = _environments.get(path)
        if environment is None:
            environment = _environments[path] = Environment(path, map_size)
        environment.references += 1
        return environment


def release(environment: Environment) -> None:
    """Give up one share of the environment."""
    with _lock:
        environment.references -= 1
        if environment.references == 0 and _environments.get(environment.path) is environment:
            del _environments[environment.path]
            environment.handle.close()


def _leave_to_the_parent() -> None:
    """In a forked child: begin anew."""
    for environment in list(_environments.values()):
        if environment.process != os.getpid():
            del _environments[environment.path]
            if environment.pinned:
                _inherited.append(environment)
            else:
                environment.handle.close()
