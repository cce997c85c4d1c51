"""What a package of Python offers, as plain data: modules, what they export, classes, members, parameters, defaults.

It needs nothing but the standard library, because it runs in two interpreters: in the one that has apache-flink, as a
program that prints JSON, and in the tests, which look at Holdfast with the same eyes.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import importlib
import importlib.metadata
import inspect
import json
import pkgutil
import sys
import textwrap
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, get_origin

#: Special methods that a program uses by their syntax.
_WORDS = "init call iter next len getitem setitem delitem contains enter exit add sub"
OPERATORS = frozenset(f"__{name}__" for name in _WORDS.split())
#: What Python says of the parameters of a callable that says nothing.
_UNKNOWN = None


def surface(root: str, packages: list[str]) -> dict[str, Any]:
    """``exports``: module -> name -> the place where it is defined; all others by that place."""
    found: dict[str, Any] = {"exports": {}, "classes": {}, "functions": {}, "constants": {}}
    for module in _modules(packages):
        exports: dict[str, str] = {}
        for name, value in sorted(_public(module)):
            home = f"{value.__module__}.{value.__qualname__}"
            exports[name] = home.removeprefix(f"{root}.")
            if inspect.isclass(value):
                _add_class(found["classes"], root, value)
            else:
                found["functions"][exports[name]] = parameters(value)
        for name, value in sorted(constants(module, root)):
            exports[name] = f"{module.__name__}.{name}".removeprefix(f"{root}.")
            found["constants"][exports[name]] = shown(value)
        found["exports"][module.__name__.removeprefix(f"{root}.")] = exports
    return found


def _modules(packages: list[str]) -> Iterator[ModuleType]:
    for name in packages:
        package = importlib.import_module(name)
        yield package
        for entry in pkgutil.walk_packages(package.__path__, f"{name}."):
            if not any(part.startswith("_") or part == "tests" for part in entry.name.split(".")):
                yield importlib.import_module(entry.name)


def _public(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """The classes and functions that a module says that it exports, or defines."""
    said = set(getattr(module, "__all__", ()))
    for name, value in vars(module).items():
        if not (inspect.isclass(value) or inspect.isfunction(value)) or name.startswith("_"):
            continue
        # A package has what it was given; a module also has what it imports for itself.
        package = hasattr(module, "__path__") and value.__module__.split(".")[0] == module.__name__.split(".")[0]
        if name in said or value.__module__ == module.__name__ or package:
            yield name, value


def constants(module: ModuleType, root: str) -> Iterator[tuple[str, Any]]:
    """Numbers, texts, and objects of the package's own classes. Where a module has them from cannot be seen."""
    for name, value in vars(module).items():
        own = type(value).__module__.split(".")[0] == root
        if not name.startswith("_") and (type(value) in (int, float, str, bytes) or own):
            yield name, value


def _add_class(classes: dict[str, Any], root: str, cls: type) -> None:
    home = f"{cls.__module__}.{cls.__qualname__}".removeprefix(f"{root}.")
    if home in classes:
        return
    classes[home] = members(cls, root)
    for name, value in vars(cls).items():
        if inspect.isclass(value) and not name.startswith("_") and value.__module__.split(".")[0] == root:
            _add_class(classes, root, value)


def members(cls: type, root: str) -> dict[str, Any]:
    """Name -> what it is: ``{"parameters": [...]}`` of a method, else ``{"kind": ...}``."""
    found: dict[str, Any] = {}
    for base in cls.__mro__:
        # Not dir(): enumerations leave out their methods.
        for name in vars(base) if base.__module__.split(".")[0] == root else ():
            known = name in found or (name.startswith("_") and name not in OPERATORS)
            # One that raises AttributeError is there to say what to use instead.
            if not known and hasattr(cls, name):
                found[name] = member(cls, name)
    for name in fields(cls, root):
        found.setdefault(name, {"kind": "attribute"})
    return dict(sorted(found.items()))


def member(cls: type, name: str) -> dict[str, Any]:
    """What one name of a class is."""
    raw = inspect.getattr_static(cls, name)
    if isinstance(raw, enum.Enum):
        return {"kind": "member"}
    if isinstance(raw, property):
        return {"kind": "property"}
    if inspect.isclass(raw) or get_origin(raw) is not None:
        return {"kind": "class"}
    bound = isinstance(raw, (staticmethod, classmethod))
    if bound or callable(raw):
        return {"parameters": parameters(getattr(cls, name), skip_self=not bound)}
    return {"kind": "attribute"}


def fields(cls: type, root: str) -> set[str]:
    """Public attributes of instances: fields of dataclasses, slots, and what ``__init__`` sets."""
    found = {field.name for field in dataclasses.fields(cls)} if dataclasses.is_dataclass(cls) else set()
    for base in cls.__mro__:
        if base.__module__.split(".")[0] != root:
            continue
        found |= set(getattr(base, "__slots__", ())) | set(inspect.get_annotations(base))
        if "__init__" in vars(base) and inspect.isfunction(base.__init__) and not dataclasses.is_dataclass(base):
            found |= _assigned(base.__init__)
    return {name for name in found if not name.startswith("_")}


def _assigned(function: Callable[..., Any]) -> set[str]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    }


def parameters(function: Callable[..., Any], skip_self: bool = False) -> list[dict[str, Any]] | None:
    """Name, and where they are unusual kind and default, of each parameter."""
    try:
        found = list(inspect.signature(function).parameters.values())
    except (ValueError, TypeError):
        return _UNKNOWN
    return [_parameter(one) for one in (found[1:] if skip_self else found)]


def _parameter(one: inspect.Parameter) -> dict[str, Any]:
    said: dict[str, Any] = {"name": one.name}
    if one.kind is one.VAR_POSITIONAL:
        said["kind"] = "*"
    elif one.kind is one.VAR_KEYWORD:
        said["kind"] = "**"
    if one.default is not one.empty:
        said["default"] = shown(one.default)
    return said


def shown(value: Any) -> str:
    """A default value as text, alike in both packages."""
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if value is None or isinstance(value, (bool, int, float, str, bytes, tuple, list, dict)):
        return repr(value)
    return f"<{type(value).__name__}>"


if __name__ == "__main__":
    read = {"version": importlib.metadata.version("apache-flink")}
    json.dump(read | surface("pyflink", ["pyflink.common", "pyflink.datastream"]), sys.stdout, indent=1)
