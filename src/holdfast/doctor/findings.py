"""What an examination of an application found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum


class Level(IntEnum):
    """How fit the application is in one respect. The highest level of all findings is that of the application."""

    GREEN = 0  #: as it should be
    YELLOW = 1  #: jobs are right, and slower or less safe than they could be
    RED = 2  #: jobs do not run, or lose what they have when something fails


@dataclass(frozen=True)
class Finding:
    """One respect: what was seen, and what to do about it. ``advice`` is empty where there is nothing to do."""

    level: Level
    subject: str
    seen: str
    advice: str = ""


def green(subject: str, seen: str) -> Finding:
    return Finding(Level.GREEN, subject, seen)


def yellow(subject: str, seen: str, advice: str) -> Finding:
    return Finding(Level.YELLOW, subject, seen, advice)


def red(subject: str, seen: str, advice: str) -> Finding:
    return Finding(Level.RED, subject, seen, advice)


def worst(findings: Iterable[Finding]) -> Level:
    return max((finding.level for finding in findings), default=Level.GREEN)
