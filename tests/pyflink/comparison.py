"""Which of PyFlink's names Holdfast has, found by looking at it."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any, get_origin

from tests.pyflink.surface import OPERATORS, member, members, parameters, shown

_ABSENT = object()


@dataclass(frozen=True)
class Found:
    """One name of PyFlink. ``difference``: what Holdfast lacks of it, or has otherwise; empty if nothing."""

    #: The module of PyFlink, without ``pyflink``.
    module: str
    #: The class, with those that it is nested in; empty for a name of the module itself.
    owner: str
    name: str
    #: With parameters and defaults; empty for what is no method.
    signature: str
    #: Where the name of a module is defined, if elsewhere.
    home: str = ""
    difference: str = ""
    takes_java: bool = False

    @property
    def path(self) -> str:
        return ".".join(part for part in (self.module, self.owner, self.name) if part)


def compared(names: dict[str, Any]) -> Iterator[Found]:
    """Every name of PyFlink beside Holdfast."""
    for module, exports in names["exports"].items():
        yield Found(module, "", "", "", difference="" if _module(module) else "no such module")
        for name, home in exports.items():
            yield _export(names, module, name, home)
    for home, expected in names["classes"].items():
        yield from _members(*split(home, names["exports"]), expected)


def _export(names: dict[str, Any], module: str, name: str, home: str) -> Found:
    ours = resolve(module, name)
    constant = names["constants"].get(home)
    signature = signature_of(names["functions"][home]) if home in names["functions"] else ""
    elsewhere = "" if home == f"{module}.{name}" else home
    if ours is _ABSENT:
        difference = "absent"
    elif elsewhere and resolve(*split(home, names["exports"])) is not ours:
        difference = f"not the same as {home}"
    elif constant is not None:
        difference = "" if shown(ours) == constant else f"is {shown(ours)}"
    elif signature and not inspect.isclass(ours):
        difference = disagreement(names["functions"][home], parameters(ours))
    else:
        difference = ""
    return Found(module, "", name, signature if constant is None else f" = {constant}", elsewhere, difference)


def _members(module: str, owner: str, expected: dict[str, Any]) -> Iterator[Found]:
    found = resolve(module, owner)
    cls = get_origin(found) or found
    has = members(cls, "holdfast") if inspect.isclass(cls) else {}
    for name, theirs in expected.items():
        theirs_are = theirs.get("parameters")
        signature = signature_of(theirs_are) if "parameters" in theirs else ""
        if not inspect.isclass(cls):
            difference = "absent"
        elif name == "__init__" and "parameters" in theirs:
            difference = disagreement(theirs_are, parameters(cls))
        elif name in OPERATORS and hasattr(cls, name):
            difference = ""
        elif name not in has and not hasattr(cls, name):
            difference = "absent"
        else:
            # What Python's own classes bring along is looked at only where PyFlink has it.
            mine = has.get(name) or member(cls, name)
            kind = "method" if "parameters" in theirs else "attribute"
            same_kind = ("parameters" in theirs) == ("parameters" in mine)
            difference = disagreement(theirs_are, mine.get("parameters")) if same_kind else f"no {kind}"
        yield Found(module, owner, name, signature, difference=difference, takes_java=takes_java(theirs_are))


def split(home: str, modules: dict[str, Any]) -> tuple[str, str]:
    """A place as module and name inside of it."""
    parts = home.split(".")
    end = max(n for n in range(1, len(parts)) if ".".join(parts[:n]) in modules)
    return ".".join(parts[:end]), ".".join(parts[end:])


@cache
def _module(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(f"holdfast.{name}")
    except ModuleNotFoundError:
        return None


def resolve(module: str, name: str) -> Any:
    found: Any = _module(module)
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except (AttributeError, ImportError):
            return _ABSENT
    return found


def signature_of(them: list[dict[str, Any]] | None) -> str:
    if them is None:
        return "(...)"
    return f"({', '.join(_shown(one) for one in them)})"


def _shown(one: dict[str, Any]) -> str:
    return one.get("kind", "") + one["name"] + (f"={one['default']}" if "default" in one else "")


def takes_java(them: list[dict[str, Any]] | None) -> bool:
    """Whether a parameter is an object of the Java VM."""
    return any(one["name"].startswith("j_") for one in them or [])


def disagreement(theirs: list[dict[str, Any]] | None, ours: list[dict[str, Any]] | None) -> str:
    """Whether what calls PyFlink's cannot call ours: every call that it takes must mean the same here."""
    if theirs is None or ours is None or [p.get("kind") for p in ours] == ["*", "**"]:
        return ""
    if all("default" in one for one in theirs if takes_java([one])):
        # For PyFlink's own use, behind what programs give.
        theirs = [one for one in theirs if not takes_java([one])]
    for position, one in enumerate(theirs):
        if position >= len(ours):
            return f"takes {signature_of(ours)}"
        mine = ours[position]
        same_default = "default" not in one or mine.get("default") == one["default"]
        if one["name"] != mine["name"] or one.get("kind") != mine.get("kind") or not same_default:
            return f"takes {signature_of(ours)}"
    more = ours[len(theirs) :]
    return "" if all("default" in one or "kind" in one for one in more) else f"takes {signature_of(ours)}"
