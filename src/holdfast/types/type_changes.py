"""What may happen to a type between two runs of a program, and how stored bytes and keys follow it.

A type may become wider (BYTE -> SHORT -> INT -> LONG, FLOAT -> DOUBLE, CHAR -> STRING, a DECIMAL with more digits
before or behind the point), and one whose fields have names (a named row, a dataclass, NamedTuple or struct) may gain
fields that have a default or may be None, lose fields and reorder them. The rules hold inside of composites too; the
keys of a map must stay different from each other, so that theirs lose no field. Nothing else may change.

Keys of a map may change as values may, as long as different keys stay different. The keys of a stream must keep their
hash as well: it says in which key group, and so in which subtask, their state is.

What may happen to the types of one class, they say themselves; here is what holds for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.types.contract import TypeInformation

#: From a stored value of the old type to one of the new type.
Change = Callable[[Any], Any]
#: From a key of the old type to what the new type takes for it.
KeyChange = Callable[[Any], Any]


def same(value: Any) -> Any:
    """The change of what stays as it is."""
    return value


def optional(change: Change, part: Any) -> Any:
    """The change of a field or an element, which may be None."""
    return None if part is None else change(part)


def change_between(old: TypeInformation, new: TypeInformation) -> Change | None:
    """How stored values of ``old`` become those of ``new``; None when the types are incompatible."""
    return same if old == new else new.change_from(old)


def loses_nothing(old: TypeInformation, new: TypeInformation) -> bool:
    """Whether different values of ``old`` stay different as values of ``new``: no field is left out."""
    return new.loses_nothing_of(old)


def key_change(old: TypeInformation, new: TypeInformation) -> KeyChange | None:
    """None when keys of ``old`` cannot become keys of ``new``, or different ones might become one."""
    if change_between(old, new) is None or not loses_nothing(old, new):
        return None
    return new.key_change_from(old)


def keeps_hash(old: TypeInformation, new: TypeInformation) -> bool:
    """Whether every key has the same hash before and behind its ``key_change``."""
    return old == new or new.keeps_hash_of(old)
