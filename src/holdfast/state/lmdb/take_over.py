"""The copy of a store that an earlier attempt left, made and verified in a process of its own.

LMDB trusts the pages of its file: damaged ones may end the process that reads them, or keep it busy without end. So a
child reads everything first, which the copy does anyway: entries have the digest that the last commit left beside them,
epoch records each have their own. What the child was content with is in the page cache, and is trusted from there on.
"""

from __future__ import annotations

import faulthandler
import os
import shutil
import signal
import warnings
from collections.abc import Callable
from pathlib import Path

import lmdb

from holdfast.errors import StateError, StoreDamagedError
from holdfast.state.epoch_log import decode_record
from holdfast.state.lmdb.environments import DATA_FILE, DATABASES, exists
from holdfast.state.lmdb.epochs import EpochTable
from holdfast.state.lmdb.meta import content_digest, stored_digest
from holdfast.storage.private_files import FILE_MODE

_WHOLE, _NOT_POSSIBLE, _DAMAGED = 0, 3, 4
#: A damaged tree may be read in circles. Seconds for any store, and bytes that are read in a further one.
_PATIENCE, _BYTES_PER_SECOND = 60, 8 << 20


def copy(source: Path, target: Path) -> bool:
    """Copy the last committed state of an environment, of which other processes may be writers. False without one, or
    where it cannot be copied; StoreDamagedError where it is not what was written.
    """
    if not exists(source):
        return False
    target.mkdir(parents=True)
    patience = _PATIENCE + (source / DATA_FILE).stat().st_size // _BYTES_PER_SECOND
    outcome = _in_child(lambda: _copy_and_verify(source, target), patience)
    if outcome == _WHOLE:
        return True
    shutil.rmtree(target, ignore_errors=True)
    if outcome == _NOT_POSSIBLE:
        return False
    raise StoreDamagedError(f"The local store {source} is damaged: it does not hold what its last commit has written.")


def _in_child(work: Callable[[], int], patience: int) -> int:
    """What a child of this process makes of it: its result, or something else if it does not come to one."""
    try:
        return _outcome_of(_forked(work, patience))
    except OSError:
        # The host has no room for a process, or this one is not told how its children end.
        return _NOT_POSSIBLE


def _forked(work: Callable[[], int], patience: int) -> int:
    with warnings.catch_warnings():
        # Threads of this process are not in the child, and it needs none of them.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        outcome = _DAMAGED
        try:
            # Should it crash, that is an answer, and nothing to report.
            faulthandler.disable()
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(patience)
            outcome = work()
        finally:
            os._exit(outcome)
    return child


def _outcome_of(child: int) -> int:
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def _copy_and_verify(source: Path, target: Path) -> int:
    try:
        with lmdb.open(str(source), max_dbs=DATABASES, readonly=True, lock=True, subdir=True) as environment:
            environment.copy(str(target), compact=True)
        (target / DATA_FILE).chmod(FILE_MODE)
        with lmdb.open(str(target), max_dbs=DATABASES, readonly=True, lock=False, subdir=True) as environment:
            return _outcome(environment)
    except StateError:
        return _DAMAGED
    except lmdb.Error as error:
        # Others are of this host: no room for the copy, no right to read.
        return _DAMAGED if isinstance(error, _DAMAGE) else _NOT_POSSIBLE


_DAMAGE = (
    lmdb.CorruptedError,
    lmdb.InvalidError,
    lmdb.PageNotFoundError,
    lmdb.PanicError,
    lmdb.CursorFullError,
    lmdb.NotFoundError,
    lmdb.VersionMismatchError,
    lmdb.IncompatibleError,
)


def _outcome(environment: lmdb.Environment) -> int:
    data, epochs, meta = (environment.open_db(name, create=False) for name in (b"data", b"epochs", b"meta"))
    with environment.begin() as txn:
        expected = stored_digest(txn, meta)
        if expected is None:
            return _NOT_POSSIBLE
        for record in EpochTable(txn, epochs).newer_than(-1):
            decode_record(record)
        return _WHOLE if content_digest(txn, data) == expected else _DAMAGED
