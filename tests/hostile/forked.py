"""A function in a process of its own, which may be killed by what it meets. A fork takes milliseconds; the imports of a
new interpreter would take most of the time of a case.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

#: Of a process that hangs.
PATIENCE = 90.0


@dataclass(frozen=True)
class Ended:
    """How a process ended: its exit code, or minus its signal; and what it told. ``hung``: it was killed for that."""

    code: int
    told: str
    hung: bool = False


def in_fork(work: Callable[[], None], log: Path) -> Ended:
    """Exit code 1 with the error and its causes in the log where ``work`` raises."""
    pid = os.fork()
    if pid == 0:
        _run(work, log)
    end = time.monotonic() + PATIENCE
    hung = False
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            break
        if time.monotonic() > end and not hung:
            os.kill(pid, signal.SIGKILL)
            hung = True
        time.sleep(0.005)
    return Ended(os.waitstatus_to_exitcode(status), log.read_text(errors="replace"), hung)


def _run(work: Callable[[], None], log: Path) -> None:
    code = 1
    try:
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        sys.stdout = sys.stderr = os.fdopen(descriptor, "w")
        logging.basicConfig(level=logging.INFO, stream=sys.stderr, force=True)
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        # No handler of the process that was forked runs.
        os._exit(code)
