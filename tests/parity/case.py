"""A program that runs on PyFlink and on Holdfast, and how what it gives is compared.

Nothing here knows either package: it is imported in the environment of each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

MODES = ("STREAMING", "BATCH")
PARALLELISMS = (1, 2)


class Order(StrEnum):
    """Where PyFlink promises an order of the lines that a program gives."""

    NEVER = "never"
    #: Of one subtask, in a stream.
    ALONE = "alone"
    ALWAYS = "always"


@dataclass(frozen=True)
class Setting:
    """One way to run a program."""

    mode: str
    parallelism: int

    @property
    def name(self) -> str:
        return f"{self.mode}-{self.parallelism}"

    @classmethod
    def parse(cls, name: str) -> Setting:
        mode, _, parallelism = name.partition("-")
        return cls(mode, int(parallelism))


@dataclass(frozen=True)
class Case:
    """What is known of a program. The program itself takes an environment and a directory of its own, and gives one of

    - a stream, whose rows are collected;
    - a list of texts, for what is known without a job;
    - nothing, where it has printed rows, or written files into the directory.
    """

    #: Of "PyFlink's whole DataStream surface": 1 to 10, or 0 for what PyFlink's users do most.
    part: int
    order: Order
    modes: Sequence[str]
    parallelisms: Sequence[int]
    #: Both packages must fail, and Holdfast's error must match this; empty where none may fail.
    fails: str

    def settings(self) -> list[Setting]:
        return [Setting(mode, parallelism) for mode in self.modes for parallelism in self.parallelisms]

    def compared(self, lines: Iterable[str], setting: Setting) -> list[str]:
        """What two runs with a setting have in common."""
        if setting.mode == "BATCH":
            # A batch of Flink chooses its parallelism by the size of its data, and with it whether a line has a number.
            lines = [
                re.sub(r"^(?:([\w ]+):)?N> ", lambda found: f"{found[1]}> " if found[1] else "", line) for line in lines
            ]
        alone = self.order is Order.ALONE and setting == Setting("STREAMING", 1)
        return list(lines) if alone or self.order is Order.ALWAYS else sorted(lines)


Program = Callable[[Any, Path], Any]


def program(
    part: int = 0,
    *,
    order: Order = Order.NEVER,
    modes: Sequence[str] = MODES,
    parallelisms: Sequence[int] = PARALLELISMS,
    fails: str = "",
) -> Callable[[Program], Program]:
    """Makes a function of a module of programs a program."""

    def mark(function: Any) -> Program:
        function.case = Case(part, order, modes, parallelisms, fails)
        marked: Program = function
        return marked

    return mark


def facts(part: int) -> Callable[[Program], Program]:
    """Makes a function that starts no job, and gives texts, a program. It is run once."""
    return program(part, order=Order.ALWAYS, modes=("STREAMING",), parallelisms=(1,))


def text_of(value: Any) -> str:
    """A value as a line: of its type, and equal for equal values. Both packages show rows and instants alike."""
    if isinstance(value, Mapping):
        items = sorted((text_of(key), text_of(item)) for key, item in value.items())
        return "{" + ", ".join(f"{key}: {item}" for key, item in items) + "}"
    if type(value) is tuple:
        return "(" + "".join(f"{text_of(item)}, " for item in value) + ")"
    if type(value) is list:
        return "[" + ", ".join(text_of(item) for item in value) + "]"
    return repr(value)


def attempt(call: Callable[[], Any]) -> str:
    """What a call gives, or the error that it raises, by the name that Python has for it."""
    try:
        given = call()
    except Exception as error:
        return "raises " + next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins")
    return given if isinstance(given, str) else text_of(given)


def told(*calls: Callable[[], Any]) -> list[str]:
    """What each call gives: one that a package lacks is one line that differs, and not all of them."""
    return [attempt(call) for call in calls]


def printed_line(line: str) -> str:
    """A printed line without the number of its subtask: which one has a key is up to the hash of each package."""
    return re.sub(r"^((?:[\w ]+:)?)\d+> ", r"\1N> ", line)
