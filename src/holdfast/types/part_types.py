"""Types of parts: that they are types, and how those of fields are stored."""

from __future__ import annotations

from typing import Any

from holdfast.errors import ProgramError
from holdfast.types.contract import TypeInformation


def check_type(value: object, label: str) -> None:
    """ProgramError for what a program gave as the type of a field or an element, and is none."""
    if not isinstance(value, TypeInformation):
        raise ProgramError(
            f"{label} was given {value!r} as a type of its content; expected TypeInformation such as Types.LONG()"
        )


def fields_from_json(data: dict[str, Any]) -> tuple[tuple[TypeInformation, ...], tuple[str, ...]]:
    """Types and names of the fields in a stored form."""
    types = tuple(TypeInformation.from_json(stored) for _, stored in data["fields"])
    return types, tuple(name for name, _ in data["fields"])
