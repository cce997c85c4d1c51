"""The types that are known: those of Holdfast, and those that other packages and programs have registered.

A type is found by its kind where its stored form is read, and by its other names where a program declares it: a word of
DDL, a class of Python, a logical type of Avro. A package offers types as entry points of the group ``holdfast.types``,
under their kinds. For a kind the one of that name is loaded; all of them for another name that no known type has.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.errors import ProgramError
from holdfast.types.immutable import declare_immutable

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

    from holdfast.types.contract import TypeInformation

GROUP = "holdfast.types"

#: From a default in the JSON of an Avro schema to the value that it stands for.
FromJson = Callable[[Any], Any]
#: The type of an Avro schema, and its defaults; given the schema, and how defaults of its plain type are read.
AvroReader = Callable[[Mapping[str, Any], FromJson], "tuple[TypeInformation, FromJson]"]


@dataclass(frozen=True)
class DdlWord:
    """Makes the type of a word of DDL, from the numbers that stand in brackets behind it."""

    make: Callable[..., TypeInformation]
    at_least: int = 0
    at_most: int = 0
    #: Whether brackets may stand there at all.
    sized: bool = False


@dataclass(frozen=True)
class Names:
    """What else types of one class are called, and how it is read."""

    ddl: Mapping[str, DdlWord] = field(default_factory=dict)
    python: Mapping[Any, TypeInformation] = field(default_factory=dict)
    avro: Mapping[str, AvroReader] = field(default_factory=dict)
    avro_logical: Mapping[str, AvroReader] = field(default_factory=dict)


_kinds: dict[str, type[TypeInformation]] = {}
#: The classes of types that take classes of a program: whether one does is for ``takes`` to say.
CLASS_KINDS: list[type[TypeInformation]] = []
_ddl: dict[str, DdlWord] = {}
_python: dict[Any, TypeInformation] = {}
_avro: dict[str, AvroReader] = {}
_avro_logical: dict[str, AvroReader] = {}
_tables: tuple[tuple[str, dict[Any, Any]], ...] = (
    ("ddl", _ddl),
    ("python", _python),
    ("avro", _avro),
    ("avro_logical", _avro_logical),
)

#: Whether everything that is offered was tried, by which threads it is being tried, and what was of no use.
_offered = False
_loading: set[int] = set()
_refused: dict[str, str] = {}

T = TypeVar("T", bound="type[TypeInformation]")
V = TypeVar("V")


def register_type(cls: T) -> T:
    """Make a class of types known; a decorator. ProgramError where another class has its kind or one of its names."""
    known = _kinds.get(cls.kind)
    if known is not None and _name(known) != _name(cls):
        raise ProgramError(
            f"The kind of type '{cls.kind}' is that of {_name(known)}; {_name(cls)} needs another one, under which its "
            "types are stored. Take one with the name of your package in front."
        )
    names = cls.names()
    for about, table in _tables:
        taken = {} if known is not None else {name for name in getattr(names, about) if name in table}
        if taken:
            raise ProgramError(
                f"{_name(cls)} has the names {sorted(map(str, taken))}, which other types have already; give it others."
            )
    _kinds[cls.kind] = cls
    if cls.of_classes:
        CLASS_KINDS[:] = [*(one for one in CLASS_KINDS if one.kind != cls.kind), cls]
    for about, table in _tables:
        table.update(getattr(names, about))
    declare_immutable(*cls.immutable_classes())
    return cls


def kind_of(kind: object) -> type[TypeInformation] | None:
    """The class of types whose stored form says ``kind``."""
    if not isinstance(kind, str):
        return None
    if kind not in _kinds:
        for offered in _offers().select(name=kind):
            _load(offered)
    return _kinds.get(kind)


def ddl_word(word: str) -> DdlWord | None:
    return _find(_ddl, word)


def python_type(declared: Any) -> TypeInformation | None:
    """The type of values of a Python class."""
    return _find(_python, declared)


def avro_name(name: str) -> AvroReader | None:
    """Avro's own type of a name."""
    return _avro.get(name)


def avro_logical_type(name: object) -> AvroReader | None:
    return _find(_avro_logical, name)


def known_kinds() -> list[str]:
    return sorted(_kinds)


def known_ddl() -> list[str]:
    return list(_ddl)


def registered_types() -> list[type[TypeInformation]]:
    """In the order in which they were registered."""
    return list(_kinds.values())


def not_loaded() -> list[str]:
    """Why packages that offer types are of no use: for whoever asks for a type that nobody knows."""
    return [reason for kind, reason in _refused.items() if kind not in _kinds]


def _find(table: Mapping[Any, V], name: Any) -> V | None:
    if name not in table:
        _load_offered()
    return table.get(name)


def _load_offered() -> None:
    """Register what installed packages offer, once. A package that cannot be loaded is no concern of programs that do
    not use it; one that asks for a type while it is being loaded gets what is known so far.
    """
    global _offered
    thread = threading.get_ident()
    if _offered or thread in _loading:
        return
    _loading.add(thread)
    try:
        for offered in _offers():
            if offered.name not in _kinds:
                try:
                    _load(offered)
                except ProgramError as error:
                    _refused[offered.name] = str(error)
        _offered = True
    finally:
        _loading.discard(thread)


def _offers() -> EntryPoints:
    # Few programs need it, and it takes its time.
    from importlib.metadata import entry_points

    return entry_points(group=GROUP)


def _load(offered: EntryPoint) -> None:
    try:
        cls = offered.load()
    except Exception as error:
        raise ProgramError(f"The type '{offered.name}' cannot be loaded from {offered.value}: {error}.") from error
    if getattr(cls, "kind", None) != offered.name:
        raise ProgramError(
            f"The entry point '{offered.name}' ({offered.value}) gave {cls!r:.90}; expected a class of types whose "
            f"kind is '{offered.name}'."
        )
    register_type(cls)


def _name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
