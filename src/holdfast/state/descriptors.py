"""State descriptors, with PyFlink's names: what a state is called and what it holds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self

from holdfast.errors import ProgramError
from holdfast.state.serializers import Serializer, serializer_for
from holdfast.state.ttl_config import StateTtlConfig
from holdfast.state.versions import Versions
from holdfast.types.resolve import resolve
from holdfast.types.typeinfo import TypeInformation, Types

__all__ = [
    "AggregatingStateDescriptor",
    "ListStateDescriptor",
    "MapStateDescriptor",
    "ReducingStateDescriptor",
    "StateDescriptor",
    "ValueStateDescriptor",
]


class StateDescriptor(ABC):
    """The name and types of a state. Descriptors of one kind, name, types and version are equal, whatever their
    functions are.

    Types are whatever ``resolve`` takes: ``Types.*``, a Spark DDL text or DataType, a Python type, a dataclass, or None
    to pickle.
    """

    #: value | list | map | reducing | aggregating; stored with the state
    kind: ClassVar[str]
    #: Of all that the state holds for a key.
    type_info: TypeInformation

    def __init__(self, name: str) -> None:
        if not isinstance(name, str) or not name:
            raise ProgramError(f"A state needs a name, a text that is not empty; this descriptor was given {name!r}.")
        self.name = name
        self.ttl_config: StateTtlConfig | None = None
        self.versions = Versions(f"state '{name}'", "descriptor.migrate_from({version}, function)")
        self.former_names: tuple[str, ...] = ()

    def get_name(self) -> str:
        return self.name

    def enable_time_to_live(self, ttl_config: StateTtlConfig) -> None:
        """Let the values of keyed state expire. It is not part of the type: it may change at a restore."""
        if not isinstance(ttl_config, StateTtlConfig):
            raise ProgramError(
                f"enable_time_to_live of the {self.describe()} was given {ttl_config!r}; expected a StateTtlConfig: "
                "StateTtlConfig.new_builder(Time.hours(1)).build()."
            )
        self.ttl_config = ttl_config if ttl_config.is_enabled() else None

    def version(self, version: int) -> Self:
        """Set the version of what is stored: a whole number that grows with each change that needs a migration. Without
        it the version is one more than the highest that ``migrate_from`` was given, or 0.
        """
        self.versions.set_version(version)
        return self

    def migrate_from(self, version: int, function: Callable[..., Any]) -> Self:
        """When state of ``version`` is restored, ``function`` makes what the next version stores.

        It is called with a value (an accumulator, an element of a list) and gives a value; for a map with a map key and
        a value, and it gives both. None drops it. Instances of classes come as rows with names, as they were stored.
        It must depend on nothing but what it is given. It runs in the tasks that restore, before any row is processed.
        """
        self.versions.add_step(version, function)
        return self

    def renamed_from(self, *names: str) -> Self:
        """State that was stored under one of these names is this state."""
        wrong = [name for name in names if not isinstance(name, str) or not name or name == self.name]
        if wrong:
            raise ProgramError(f"The {self.describe()} was renamed from {wrong[0]!r}; expected another name.")
        self.former_names += names
        return self

    @abstractmethod
    def types(self) -> dict[str, TypeInformation]:
        """The declared types by role: value, or map_key and value."""

    def serializers(self) -> dict[str, Serializer]:
        """A serializer for each role."""
        return {role: serializer_for(type_info) for role, type_info in self.types().items()}

    def describe(self) -> str:
        types = ", ".join(type_info.describe() for type_info in self.types().values())
        return f"{self.kind} state '{self.name}' of {types}"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StateDescriptor):
            return NotImplemented
        mine, its = (self.kind, self.name, self.types()), (other.kind, other.name, other.types())
        return mine == its and self.versions.current == other.versions.current

    def __hash__(self) -> int:
        return hash((self.kind, self.name))

    def __repr__(self) -> str:
        return f"<{self.describe()}>"


class _OneTypeDescriptor(StateDescriptor):
    def __init__(self, name: str, type_like: Any) -> None:
        super().__init__(name)
        self.type_info = resolve(type_like)

    def types(self) -> dict[str, TypeInformation]:
        return {"value": self.type_info}


class ValueStateDescriptor(_OneTypeDescriptor):
    """One value for each key."""

    kind = "value"

    def __init__(self, name: str, value_type_info: Any = None) -> None:
        super().__init__(name, value_type_info)


class ListStateDescriptor(_OneTypeDescriptor):
    """A list for each key, or a list of operator state."""

    kind = "list"

    def __init__(self, name: str, elem_type_info: Any = None) -> None:
        super().__init__(name, elem_type_info)


class MapStateDescriptor(StateDescriptor):
    """A map for each key, or a broadcast map. Entries are stored one by one."""

    kind = "map"

    def __init__(self, name: str, key_type_info: Any = None, value_type_info: Any = None) -> None:
        super().__init__(name)
        self.key_type_info = resolve(key_type_info)
        self.value_type_info = resolve(value_type_info)
        self.type_info = Types.MAP(self.key_type_info, self.value_type_info)

    def types(self) -> dict[str, TypeInformation]:
        return {"map_key": self.key_type_info, "value": self.value_type_info}


class ReducingStateDescriptor(_OneTypeDescriptor):
    """What a reduce function made of all values added. The function is a ReduceFunction or a callable of two values."""

    kind = "reducing"

    def __init__(self, name: str, reduce_function: Any, type_info: Any = None) -> None:
        super().__init__(name, type_info)
        self.reduce_function = reduce_function
        self.reduce: Callable[[Any, Any], Any] = _reduce_of(name, reduce_function)

    def get_reduce_function(self) -> Any:
        return self.reduce_function


class AggregatingStateDescriptor(_OneTypeDescriptor):
    """The accumulator of an AggregateFunction; ``state_type_info`` is the accumulator's type."""

    kind = "aggregating"

    def __init__(self, name: str, agg_function: Any, state_type_info: Any = None) -> None:
        super().__init__(name, state_type_info)
        missing = [step for step in _AGGREGATE_STEPS if not callable(getattr(agg_function, step, None))]
        if missing:
            raise ProgramError(
                f"Aggregating state '{name}' was given {agg_function!r}, which has no {', '.join(missing)}. "
                f"Give an AggregateFunction with {', '.join(_AGGREGATE_STEPS)}."
            )
        _check_stateless(f"Aggregating state '{name}'", agg_function)
        self.agg_function = agg_function

    def get_agg_function(self) -> Any:
        return self.agg_function


_AGGREGATE_STEPS = ("create_accumulator", "add", "get_result", "merge")


def _reduce_of(name: str, function: Any) -> Callable[[Any, Any], Any]:
    reduce = getattr(function, "reduce", function)
    if not callable(reduce):
        raise ProgramError(
            f"Reducing state '{name}' was given {function!r}; expected a ReduceFunction or a function of two values."
        )
    _check_stateless(f"Reducing state '{name}'", function)
    found: Callable[[Any, Any], Any] = reduce
    return found


def _check_stateless(state: str, function: Any) -> None:
    """A descriptor's function has no operator around it that would call the life cycle."""
    if any(callable(getattr(function, hook, None)) for hook in ("initialize_state", "restore_state")):
        raise ProgramError(
            f"{state} was given {function!r}, which has operator state of its own. It would never be restored: keep it "
            "in the function that uses the state."
        )
