"""Options of a program's own, with PyFlink's builders: ``ConfigOptions.key("k").int_type().default_value(3)``."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from holdfast.common.option_types import BOOLEAN, FLOAT, INTEGER, TEXT, Kind
from holdfast.common.option_types import Option as ConfigOption

__all__ = ["ConfigOption", "ConfigOptions"]

T = TypeVar("T")


class ConfigOptions:
    """Where an option begins. ``Configuration.get(option)`` reads it."""

    @staticmethod
    def key(key: str) -> ConfigOptions.OptionBuilder:
        return ConfigOptions.OptionBuilder(key)

    class OptionBuilder:
        """An option that has a key."""

        def __init__(self, key: str) -> None:
            self._key = key

        def boolean_type(self) -> ConfigOptions.TypedConfigOptionBuilder[bool]:
            return ConfigOptions.TypedConfigOptionBuilder(self._key, BOOLEAN)

        def int_type(self) -> ConfigOptions.TypedConfigOptionBuilder[int]:
            return ConfigOptions.TypedConfigOptionBuilder(self._key, INTEGER)

        def long_type(self) -> ConfigOptions.TypedConfigOptionBuilder[int]:
            return ConfigOptions.TypedConfigOptionBuilder(self._key, INTEGER)

        def float_type(self) -> ConfigOptions.TypedConfigOptionBuilder[float]:
            return ConfigOptions.TypedConfigOptionBuilder(self._key, FLOAT)

        def double_type(self) -> ConfigOptions.TypedConfigOptionBuilder[float]:
            return ConfigOptions.TypedConfigOptionBuilder(self._key, FLOAT)

        def string_type(self) -> ConfigOptions.TypedConfigOptionBuilder[str]:
            return ConfigOptions.TypedConfigOptionBuilder(self._key, TEXT)

    class TypedConfigOptionBuilder(Generic[T]):
        """An option that has a key and a type."""

        def __init__(self, key: str, kind: Kind[Any]) -> None:
            self._key = key
            self._kind = kind

        def default_value(self, value: T) -> ConfigOption[T]:
            return ConfigOption(self._key, self._kind, value, "")

        def no_default_value(self) -> ConfigOption[T | None]:
            return ConfigOption(self._key, self._kind, None, "")
