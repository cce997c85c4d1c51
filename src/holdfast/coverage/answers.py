"""What becomes of PyFlink's names that do not do here what they do there, and the errors and notes that say so.

What is supported is not declared: it is found by looking at Holdfast, beside the names that were read from PyFlink's
own modules (``tests/pyflink``), of which the reference page is made. Only the rest is declared, in ``names``.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, NoReturn

from holdfast.coverage.names import ACCEPTED, DIFFERENT, JAVA_ONLY, REFUSED
from holdfast.errors import UnavailableImportError, UnavailableNameError

logger = logging.getLogger(__name__)


class Answer(Enum):
    SUPPORTED = "supported"
    #: The call is taken and changes nothing that a program can see.
    ACCEPTED = "accepted"
    #: An error says what to do instead: to ignore the call would change results.
    REFUSED = "refused"
    #: It stands for an object of the Java VM, and there is none in a program here.
    JAVA_ONLY = "Java only"


@dataclass(frozen=True)
class Declaration:
    answer: Answer
    #: Why, and what to use instead; of a name that is supported, how its parameters differ.
    note: str


#: By class and name, by class, by module, or by name in any class, as ``*.name``.
DECLARATIONS: dict[str, Declaration] = {
    **{key: Declaration(Answer.SUPPORTED, note) for key, note in DIFFERENT.items()},
    **{key: Declaration(Answer.ACCEPTED, note) for key, note in ACCEPTED.items()},
    **{key: Declaration(Answer.REFUSED, note) for key, note in REFUSED.items()},
    **{key: Declaration(Answer.JAVA_ONLY, note) for key, note in JAVA_ONLY.items()},
}

_ONLY_IN_PYFLINK = REFUSED | JAVA_ONLY


def keys_of(module: str, owner: str, name: str) -> Iterator[str]:
    """The keys under which a name may be declared, the nearest first. ``owner`` is empty for a name of the module."""
    yield f"{owner}.{name}" if owner else name
    yield f"*.{name}"
    while owner:
        yield owner
        owner = owner.rpartition(".")[0]
    yield module


def declaration_of(module: str, owner: str, name: str) -> Declaration | None:
    """What is declared of a name, or of what it is in."""
    return next((DECLARATIONS[key] for key in keys_of(module, owner, name) if key in DECLARATIONS), None)


def note_accepted(path: str) -> None:
    """Log that a call has no effect, and why."""
    logger.info("%s() has no effect: %s.", path, DECLARATIONS[path].note)


def refusal(path: str) -> str:
    """Why a method is refused, and what to do instead."""
    return f"{path}() is not available: {DECLARATIONS[path].note}."


def answer_missing_names(module: str) -> None:
    """A name of PyFlink that is not in the module says what to use instead. A type checker sees no name in it that is
    not there.
    """
    sys.modules[module].__dict__["__getattr__"] = partial(missing_name, module)


def missing_name(module: str, name: str) -> NoReturn:
    """The ``__getattr__`` of a module."""
    path = module.removeprefix("holdfast.")
    found = None if name.startswith("_") else declaration_of(path, "", name)
    if found is None:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    raise UnavailableImportError(f"{name} of PyFlink's {path} is not available: {found.note}.", name=name)


class _Unavailable:
    """A name that only PyFlink has: who asks for it, of the class or of an object, is told what to use instead."""

    def __init__(self, name: str, note: str) -> None:
        self._name = name
        self._note = note

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise UnavailableNameError(f"{owner.__qualname__}.{self._name} is not available: {self._note}.")


class SaysWhatToUse:
    """A class of PyFlink's: a name that only PyFlink has says what to use instead. For Python it is not there."""

    __slots__ = ()

    def __init_subclass__(cls, pyflink_name: str = "", **others: Any) -> None:
        """``pyflink_name`` is that of the class, with those that it is nested in, where it has another one here."""
        super().__init_subclass__(**others)
        if cls.__module__.startswith("holdfast."):
            _answer_for(cls, pyflink_name or cls.__qualname__)


def _answer_for(cls: type, owner: str) -> None:
    for key, note in _ONLY_IN_PYFLINK.items():
        of, _, name = key.rpartition(".")
        if of == owner and name.isidentifier() and not name.startswith("_") and not _has(cls, name):
            setattr(cls, name, _Unavailable(name, note))


def _has(cls: type, name: str) -> bool:
    return any(name in vars(base) for base in cls.__mro__)


_answer_for(SaysWhatToUse, "*")
