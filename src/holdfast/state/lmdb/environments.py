"""The LMDB environments that this process has open: LMDB allows one per directory and process.

Stores of one directory share their environment by counting; the last one closes it. A forked child cannot use
what it inherited: it closes its copies, which leaves the parent's untouched, and opens its own.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from weakref import ReferenceType

import lmdb

_DATABASES = 3


class Environment:
    """An open environment with its sub-databases: ``data``, ``epochs`` (records by epoch) and ``meta`` (the stamp)."""

    def __init__(self, path: str, map_size: int) -> None:
        self.path = path
        self.references = 0
        # Crash safety against a killed process comes from the page cache; the boot id in the stamp covers the rest.
        self.handle = lmdb.open(
            path,
            map_size=map_size,
            max_dbs=_DATABASES,
            subdir=True,
            lock=True,
            sync=False,
            metasync=False,
            meminit=False,
        )
        self.handle.reader_check()
        self.data = self.handle.open_db(b"data")
        self.epochs = self.handle.open_db(b"epochs")
        self.meta = self.handle.open_db(b"meta")
        #: The store with the one write transaction; a thread that asks for a second one would wait for itself.
        self.writer: ReferenceType[object] | None = None


_environments: dict[str, Environment] = {}
_owner = os.getpid()


def acquire(directory: Path, map_size: int) -> Environment:
    """Open the environment of ``directory``, or share the open one; release it once for every call."""
    global _owner
    if _owner != os.getpid():
        for inherited in _environments.values():
            inherited.handle.close()
        _environments.clear()
        _owner = os.getpid()
    directory.mkdir(parents=True, exist_ok=True)
    path = str(directory.resolve())
    environment = _environments.get(path)
    if environment is None:
        environment = _environments[path] = Environment(path, map_size)
    environment.references += 1
    return environment


def release(environment: Environment) -> None:
    """Give up one share of the environment."""
    environment.references -= 1
    if environment.references == 0 and _environments.get(environment.path) is environment:
        del _environments[environment.path]
        environment.handle.close()


def copy(source: Path, target: Path) -> bool:
    """Copy the last committed state of an environment, of which other processes may be writers. False without one."""
    if not (source / "data.mdb").exists():
        return False
    target.mkdir(parents=True)
    try:
        with lmdb.open(str(source), max_dbs=_DATABASES, readonly=True, lock=True, subdir=True) as environment:
            environment.copy(str(target), compact=True)
    except lmdb.Error:
        shutil.rmtree(target, ignore_errors=True)
        return False
    return True
