"""Named points at which a test can make a process fail, in whichever process reaches them.

Production code calls ``failpoint("name", epoch=3, subtask=1)`` where a crash would be interesting. The call does
nothing unless the environment variable ``HOLDFAST_FAILPOINTS`` named a specification when this module was imported.
That is a JSON file::

    {"directory": "/tmp/markers",
     "triggers": [{"id": "first", "point": "name", "when": {"epoch": 3}, "hit": 2, "action": "kill"}]}

``when`` lists facts that must be equal; facts it does not name do not matter. ``hit`` (1 by default) says which
matching hit counts, over all processes together. A trigger acts at most once over all processes: its hits are numbered
by files ``<id>.<n>`` that are created exclusively in ``directory``, and the process that creates the one of the wanted
number acts. That file holds process id and facts: it proves that the point was reached.

Actions:

- ``kill``: SIGKILL to this process
- ``stop``: SIGSTOP to this process, which goes on when somebody sends SIGCONT
- ``kill-parent``: SIGKILL to the nearest ancestor that is a JVM (the executor of a Python worker)
- ``raise``: FailpointTriggered; ``raise:ENOSPC``: OSError with that error number
- ``sleep:MS``
- ``hold:MS``: sleep until a file ``<id>.release`` appears in ``directory``, at most MS
- ``touch``: leave the marker and go on
"""

from __future__ import annotations

import errno
import json
import os
import signal
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.errors import ConfigurationError

#: Names the specification file. Executors need it too: ``spark.executorEnv.HOLDFAST_FAILPOINTS``.
ENVIRONMENT_VARIABLE = "HOLDFAST_FAILPOINTS"

_PLAIN_ACTIONS = frozenset({"kill", "stop", "kill-parent", "raise", "touch"})
_TIMED_ACTIONS = frozenset({"sleep", "hold"})
_HOLD_POLL_SECONDS = 0.01


class FailpointTriggered(Exception):
    """A test asked for this failure. Not a HoldfastError: it must look like a fault that nobody foresaw."""


@dataclass(frozen=True)
class Trigger:
    """One fault: where, under which facts, at which hit, and what happens."""

    id: str
    point: str
    action: str
    when: Mapping[str, Any] = field(default_factory=dict)
    hit: int = 1

    def __post_init__(self) -> None:
        if not self.id or "/" in self.id:
            raise ConfigurationError(f"failpoint trigger id {self.id!r} must be a file name")
        if self.hit < 1:
            raise ConfigurationError(f"failpoint trigger {self.id!r} has hit {self.hit}; the first hit is 1")
        _check_action(self.id, self.action)

    def matches(self, point: str, facts: Mapping[str, Any]) -> bool:
        missing = object()
        return self.point == point and all(facts.get(name, missing) == value for name, value in self.when.items())


class Failpoints:
    """The triggers of one specification and the directory in which processes agree who acts."""

    def __init__(self, directory: Path, triggers: list[Trigger]) -> None:
        self._directory = directory
        self._triggers = triggers

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Failpoints:
        try:
            spec = json.loads(Path(path).read_text())
            triggers = [Trigger(**entry) for entry in spec["triggers"]]
            directory = Path(spec["directory"])
        except (OSError, ValueError, KeyError, TypeError) as cause:
            raise ConfigurationError(
                f"{ENVIRONMENT_VARIABLE} names {path}, which is not a failpoint specification ({cause!r}); "
                "unset the variable to run without faults"
            ) from cause
        return cls(directory, triggers)

    def reached(self, point: str, facts: Mapping[str, Any]) -> None:
        """Do what the triggers of this point ask for, in their order."""
        for trigger in self._triggers:
            if trigger.matches(point, facts) and self._is_mine(trigger, facts):
                self._act(trigger, facts)

    def _is_mine(self, trigger: Trigger, facts: Mapping[str, Any]) -> bool:
        """Number this hit; true in the one process whose hit has the trigger's number."""
        content = json.dumps({"pid": os.getpid(), "point": trigger.point, "facts": facts}, default=repr)
        draft = self._directory / f".{trigger.id}.{os.getpid()}.{time.monotonic_ns()}"
        draft.write_text(content)
        try:
            for number in range(1, trigger.hit + 1):
                try:
                    # A link appears complete and exclusively, so that whoever waits for a marker can read it.
                    os.link(draft, self._directory / f"{trigger.id}.{number}")
                except FileExistsError:
                    continue
                return number == trigger.hit
            return False
        finally:
            draft.unlink()

    def _act(self, trigger: Trigger, facts: Mapping[str, Any]) -> None:
        action, _, argument = trigger.action.partition(":")
        if action == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif action == "stop":
            # To this thread, which takes it at once: sent to the process, another one may take it, a while later.
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
        elif action == "kill-parent":
            os.kill(_nearest_jvm(os.getpid()), signal.SIGKILL)
        elif action == "raise" and argument:
            number = getattr(errno, argument)
            raise OSError(number, os.strerror(number), f"failpoint {trigger.point}")
        elif action == "raise":
            raise FailpointTriggered(f"failpoint {trigger.point} with {dict(facts)} (trigger {trigger.id!r})")
        elif action == "sleep":
            time.sleep(int(argument) / 1000)
        elif action == "hold":
            self._hold(self._directory / f"{trigger.id}.release", int(argument) / 1000)

    @staticmethod
    def _hold(release: Path, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not release.exists() and time.monotonic() < deadline:
            time.sleep(_HOLD_POLL_SECONDS)


def _check_action(trigger_id: str, action: str) -> None:
    name, _, argument = action.partition(":")
    known = (
        action in _PLAIN_ACTIONS
        or (name in _TIMED_ACTIONS and argument.isdigit())
        or (name == "raise" and isinstance(getattr(errno, argument, None), int))
    )
    if not known:
        raise ConfigurationError(
            f"failpoint trigger {trigger_id!r} has action {action!r}; expected one of kill, stop, kill-parent, raise, "
            "raise:<ERRNO>, sleep:<ms>, hold:<ms>, touch"
        )


def _nearest_jvm(pid: int) -> int:
    """The closest ancestor that runs java."""
    ancestor = _parent_of(pid)
    while ancestor > 1:
        if Path(f"/proc/{ancestor}/comm").read_text().strip() == "java":
            return ancestor
        ancestor = _parent_of(ancestor)
    raise ConfigurationError(
        f"process {pid} has no JVM among its ancestors; kill-parent works in Python workers of an executor only"
    )


def _parent_of(pid: int) -> int:
    # The name in parentheses may hold spaces; the fields behind it do not.
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


_active: Failpoints | None = None


def install(specification: str | os.PathLike[str] | None) -> None:
    """Switch the triggers of a file on in this process, or all of them off."""
    global _active
    _active = None if specification is None else Failpoints.load(specification)


def failpoint(name: str, /, **facts: Any) -> None:
    """Fail here if a test asked for it. Facts say which of many passes this is: epoch, subtask, checkpoint."""
    if _active is not None:
        _active.reached(name, facts)


install(os.environ.get(ENVIRONMENT_VARIABLE))
