"""Types whose values are instances of a class of the program: dataclasses, NamedTuples and msgspec structs."""

from __future__ import annotations

import dataclasses
import inspect
import sys
import types
import typing
from abc import abstractmethod
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, ClassVar, Self

import msgspec

from holdfast.errors import ProgramError
from holdfast.types import arrow_write, column_checks, storage_forms
from holdfast.types.arrow_read import MakeRecords
from holdfast.types.arrow_write import SplitRecords
from holdfast.types.column_checks import ColumnCheck
from holdfast.types.contract import TypeInformation
from holdfast.types.fields import Default, FieldsTypeInfo
from holdfast.types.part_types import fields_from_json
from holdfast.types.qualified_names import qualified_name
from holdfast.types.registry import register_type
from holdfast.types.storage_scalars import Form


@dataclasses.dataclass(frozen=True, repr=False)
class ClassTypeInfo(FieldsTypeInfo):
    """Instances of a class.

    Types are equal when the class has the same name and fields: a class of the main program is another object in every
    process, and a class that no longer exists must still be describable.
    """

    class_name: str = ""
    cls: type | None = dataclasses.field(default=None, compare=False)
    of_classes: ClassVar[bool] = True

    @classmethod
    @abstractmethod
    def names_of(cls, declared: type) -> tuple[str, ...]:
        """The fields that are stored: those that the constructor takes."""

    @abstractmethod
    def declared_default(self, name: str) -> Default | None:
        """What the class says of a field."""

    @classmethod
    def of(cls, declared: type, type_of: Callable[[Any], TypeInformation]) -> Self:
        """The type of a class; ``type_of`` resolves the types of its fields."""
        try:
            hints = typing.get_type_hints(declared, include_extras=True)
        except NameError as error:
            raise ProgramError(
                f"The field types of {declared.__qualname__} cannot be evaluated ({error}); define it and its field "
                "types at the top level of a module"
            ) from error
        names = cls.names_of(declared)
        bare = [name for name in names if name not in hints]
        if bare:
            raise ProgramError(
                f"The fields {', '.join(bare)} of {declared.__qualname__} have no types. Declare them: a "
                "typing.NamedTuple, a dataclass or a msgspec.Struct has a type for each field."
            )
        field_types = tuple(type_of(hints[name]) for name in names)
        return cls(field_types, names, class_name=qualified_name(declared), cls=declared)

    def describe(self) -> str:
        return f"{self.label} {self.class_name}{super().describe().removeprefix(self.label)}"

    def to_json(self) -> dict[str, Any]:
        return {**super().to_json(), "class": self.class_name}

    @classmethod
    def read_json(cls, data: dict[str, Any]) -> Self:
        return cls(*fields_from_json(data), class_name=data["class"], cls=cls._find(data["class"]))

    @classmethod
    def _find(cls, class_name: str) -> type | None:
        """A class of a module that the program has loaded. To import one by a stored name would run code of whoever
        stored it.
        """
        module_name, _, qualified = class_name.partition(":")
        found: Any = sys.modules.get(module_name)
        try:
            for part in qualified.split("."):
                found = getattr(found, part)
        except AttributeError:
            return None
        return found if cls.takes(found) else None

    @property
    def has_names(self) -> bool:
        return True

    def follows_by_name(self, old: TypeInformation) -> bool:
        """Whether both are the class of one name, of whatever kind."""
        return isinstance(old, ClassTypeInfo) and old.class_name == self.class_name

    def getter(self, field_or_place: str | int) -> Callable[[Any], Any]:
        return attrgetter(self.field_names[self._place(field_or_place)])

    def make_records(self) -> MakeRecords:
        if not self.positional:
            return super().make_records()
        cls = self.require_class()
        return lambda columns: list(map(cls, *columns))

    def split_records(self) -> SplitRecords:
        return arrow_write.columns_from_instances(self.class_name, self.field_names)

    def records_check(self, fields: Sequence[ColumnCheck]) -> ColumnCheck:
        return column_checks.never if self.cls is None else column_checks.instances(self.cls, self.field_names, fields)

    def fields_form(self, fields: Sequence[Form]) -> Form:
        return storage_forms.instance_form(self, fields, self.field_names, self.class_name, self.maker())

    def require_class(self) -> type:
        """The class itself; raises when this type came from a stored form and the class was moved or removed."""
        if self.cls is None:
            raise ProgramError(
                f"The class {self.class_name} is in no module that this process has imported; "
                f"keep it under this name in a module that the program imports, in driver and executors"
            )
        return self.cls

    def maker(self) -> Callable[[Sequence[Any]], Any]:
        """Makes an instance from the values of its fields, in their order. The class is asked for with the first one:
        where it is gone, everything else about the type can still be used.
        """
        construct: Callable[[Sequence[Any]], Any] | None = None

        def make(values: Sequence[Any]) -> Any:
            nonlocal construct
            if construct is None:
                construct = self._constructor()
            return construct(values)

        return make

    def _constructor(self) -> Callable[[Sequence[Any]], Any]:
        cls, names = self.require_class(), self.field_names
        if self.positional:
            return lambda values: cls(*values)
        return lambda values: cls(**dict(zip(names, values, strict=True)))

    @property
    def positional(self) -> bool:
        """Whether the constructor takes the values in the order of the fields."""
        parameters = list(inspect.signature(self.require_class()).parameters.values())[: len(self.field_names)]
        by_position = all(one.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for one in parameters)
        return by_position and tuple(one.name for one in parameters) == self.field_names

    def default_of(self, name: str) -> Default | None:
        """The default of a field, or None where it may be None; no default at all otherwise."""
        found = self.declared_default(name)
        if found is not None:
            return found
        hint = typing.get_type_hints(self.require_class())[name]
        optional = typing.get_origin(hint) in (typing.Union, types.UnionType) and type(None) in typing.get_args(hint)
        return (lambda: None) if optional else None


@register_type
class DataclassTypeInfo(ClassTypeInfo):
    kind: ClassVar[str] = "dataclass"
    label: ClassVar[str] = "DATACLASS"

    @classmethod
    def takes(cls, candidate: Any) -> bool:
        return isinstance(candidate, type) and dataclasses.is_dataclass(candidate)

    @classmethod
    def names_of(cls, declared: Any) -> tuple[str, ...]:
        # Fields that the constructor does not take are derived from the others, so they are not stored.
        return tuple(entry.name for entry in dataclasses.fields(declared) if entry.init)

    @property
    def immutable(self) -> bool:
        frozen = self.cls is not None and self.cls.__dataclass_params__.frozen  # type: ignore[attr-defined]  # of dataclasses
        return frozen and all(type_info.immutable for type_info in self.field_types)

    def declared_default(self, name: str) -> Default | None:
        declared: Any = self.require_class()
        field = next(field for field in dataclasses.fields(declared) if field.name == name)
        if field.default is not dataclasses.MISSING:
            return lambda: field.default
        return None if field.default_factory is dataclasses.MISSING else field.default_factory


@register_type
class StructTypeInfo(ClassTypeInfo):
    """A ``msgspec.Struct``."""

    kind: ClassVar[str] = "struct"
    label: ClassVar[str] = "STRUCT"

    @classmethod
    def takes(cls, candidate: Any) -> bool:
        return isinstance(candidate, type) and issubclass(candidate, msgspec.Struct)

    @classmethod
    def names_of(cls, declared: Any) -> tuple[str, ...]:
        return tuple(declared.__struct_fields__)

    @property
    def immutable(self) -> bool:
        frozen = self.cls is not None and self.cls.__struct_config__.frozen  # type: ignore[attr-defined]  # of structs
        return frozen and all(type_info.immutable for type_info in self.field_types)

    def declared_default(self, name: str) -> Default | None:
        field = next(one for one in msgspec.structs.fields(self.require_class()) if one.name == name)
        if field.default is not msgspec.NODEFAULT:
            return lambda: field.default
        factory: Default | None = None if field.default_factory is msgspec.NODEFAULT else field.default_factory
        return factory


@register_type
class NamedTupleTypeInfo(ClassTypeInfo):
    kind: ClassVar[str] = "named_tuple"
    label: ClassVar[str] = "NAMED_TUPLE"

    @classmethod
    def takes(cls, candidate: Any) -> bool:
        return isinstance(candidate, type) and issubclass(candidate, tuple) and hasattr(candidate, "_fields")

    @classmethod
    def names_of(cls, declared: Any) -> tuple[str, ...]:
        return tuple(declared._fields)

    @property
    def immutable(self) -> bool:
        return all(type_info.immutable for type_info in self.field_types)

    def declared_default(self, name: str) -> Default | None:
        defaults: dict[str, Any] = self.require_class()._field_defaults  # type: ignore[attr-defined]  # of NamedTuples
        return (lambda: defaults[name]) if name in defaults else None
