"""Key-value settings of a job, with Flink's keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import yaml

from holdfast.common.option_types import BOOLEAN, FLOAT, INTEGER, Option
from holdfast.common.options import BY_SPELLING
from holdfast.coverage.answers import SaysWhatToUse

T = TypeVar("T")


class Configuration(SaysWhatToUse):
    """Settings by key, stored as text. The getters and setters are PyFlink's; ``get`` reads an option of
    ``holdfast.common.options`` under any of its spellings."""

    def __init__(self, other: Configuration | None = None) -> None:
        self._values: dict[str, str] = dict(other._values) if other is not None else {}
        #: What setters of other types than text were given.
        self._typed: dict[str, Any] = dict(other._typed) if other is not None else {}

    @staticmethod
    def from_dict(map: Mapping[str, Any]) -> Configuration:
        configuration = Configuration()
        for key, value in map.items():
            configuration.set_string(key, BOOLEAN.show(value) if isinstance(value, bool) else str(value))
        return configuration

    @staticmethod
    def parse_list_value(value: str) -> list[str]:
        """The entries of a text that is a list of YAML, or has semicolons between them."""
        if not value:
            return []
        found = yaml.safe_load(value)
        return found if isinstance(found, list) else value.split(";")

    def get_string(self, key: str, default_value: str) -> str:
        return self._values.get(key, default_value)

    def set_string(self, key: str, value: str) -> Configuration:
        self._values[key] = str(value)
        self._typed.pop(key, None)
        return self

    def get_integer(self, key: str, default_value: int) -> int:
        return self._parsed(key, Option(key, INTEGER, default_value, ""))

    def set_integer(self, key: str, value: int) -> Configuration:
        return self._set(key, str(int(value)), int(value))

    def get_boolean(self, key: str, default_value: bool) -> bool:
        return self._parsed(key, Option(key, BOOLEAN, default_value, ""))

    def set_boolean(self, key: str, value: bool) -> Configuration:
        return self._set(key, BOOLEAN.show(bool(value)), bool(value))

    def get_float(self, key: str, default_value: float) -> float:
        return self._parsed(key, Option(key, FLOAT, default_value, ""))

    def set_float(self, key: str, value: float) -> Configuration:
        return self._set(key, repr(float(value)), float(value))

    def get_bytearray(self, key: str, default_value: bytearray) -> bytearray:
        return bytearray.fromhex(self._values[key]) if key in self._values else default_value

    def set_bytearray(self, key: str, value: bytes | bytearray) -> Configuration:
        return self._set(key, value.hex(), bytearray(value))

    def key_set(self) -> set[str]:
        return set(self._values)

    def contains_key(self, key: str) -> bool:
        return key in self._values

    def add_all(self, other: Configuration, prefix: str | None = None) -> Configuration:
        """Take over all entries of another configuration, under ``prefix`` + key; they win over those that are here."""
        for key, value in other._values.items():
            self._set((prefix or "") + key, value, other._typed.get(key))
        return self

    def add_all_to_dict(self, target_dict: dict[str, Any]) -> None:
        """Add all settings, with the values that typed setters were given; ``to_dict`` gives texts."""
        target_dict.update(self._values | self._typed)

    def remove_config(self, key: str) -> bool:
        self._typed.pop(key, None)
        return self._values.pop(key, None) is not None

    def to_dict(self) -> dict[str, str]:
        return dict(self._values)

    def get(self, option: Option[T]) -> T:
        """The option's value, or its default. Its own key goes before its older spellings."""
        found = self._find(option)
        return option.default if found is None else option.parse(self._values[found], spelled=found)

    def contains(self, option: Option[Any]) -> bool:
        return self._find(option) is not None

    def remove(self, option: Option[Any]) -> None:
        """Unset the option under all of its spellings."""
        spellings = {spelling.lower() for spelling in (option.key, *option.older)}
        for key in [key for key in self._values if key.lower() in spellings]:
            self.remove_config(key)

    def set_option(self, option: Option[Any], text: str) -> Configuration:
        """Set the option under its own key, whatever it was spelled as before."""
        self.remove(option)
        return self.set_string(option.key, text)

    def layered_over(self, lower: Configuration) -> Configuration:
        """Both settings, these above those of ``lower``: what both set, however spelled, has the value it has here."""
        return Configuration(lower).override(self)

    def override(self, upper: Configuration) -> Configuration:
        """Take over the settings of ``upper``: what both set, in whatever spelling, has the value it has there."""
        for key in upper._values:
            option = BY_SPELLING.get(key.lower())
            if option is not None:
                self.remove(option)
        return self.add_all(upper)

    def _set(self, key: str, text: str, value: Any) -> Configuration:
        self.set_string(key, text)
        if value is not None:
            self._typed[key] = value
        return self

    def _find(self, option: Option[Any]) -> str | None:
        by_lower_case = {key.lower(): key for key in self._values}
        spellings = (spelling.lower() for spelling in (option.key, *option.older))
        return next((by_lower_case[s] for s in spellings if s in by_lower_case), None)

    def _parsed(self, key: str, option: Option[T]) -> T:
        return option.parse(self._values[key]) if key in self._values else option.default

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Configuration) and self._values == other._values

    def __hash__(self) -> int:
        return hash(frozenset(self._values.items()))

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{key}={value}" for key, value in sorted(self._values.items())) + "}"
