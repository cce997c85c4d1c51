"""What every type says of itself: how its values look in Arrow, in stored bytes, as keys and in the tables of a
savepoint, what they may become, and by which names a program knows it.

Whoever needs one of these asks the type, once per operator or state, and works with what it got. A class of types is
complete when it can be instantiated; ``holdfast.types.logical.LogicalTypeInfo`` answers everything from another type.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import pyarrow as pa

from holdfast.coverage.answers import SaysWhatToUse
from holdfast.errors import ProgramError
from holdfast.types import registry
from holdfast.types.arrow_read import ColumnReader
from holdfast.types.arrow_write import ColumnWriter
from holdfast.types.column_checks import ColumnCheck, never
from holdfast.types.key_forms import KeyForm
from holdfast.types.registry import Names
from holdfast.types.storage_scalars import Form
from holdfast.types.table_columns import Column
from holdfast.types.text_forms import Show
from holdfast.types.type_changes import Change, KeyChange, same


class TypeInformation(SaysWhatToUse, ABC):
    """The type of a row, a key or a value: a value itself, equal when it describes the same type, and picklable."""

    #: The discriminator of the stored form.
    kind: ClassVar[str]
    #: False where a program left it open what values are; then they are pickled.
    declared: ClassVar[bool] = True
    #: Whether it is the type of instances of those classes of a program that ``takes`` names.
    of_classes: ClassVar[bool] = False

    # -- what it is

    @property
    @abstractmethod
    def immutable(self) -> bool:
        """True when no value of this type can be changed in place."""

    @abstractmethod
    def describe(self) -> str:
        """A stable text for people, such as ``TUPLE<LONG, STRING>``."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """A form of dicts, lists and strings that ``from_json`` reads, now and in later versions."""

    @classmethod
    @abstractmethod
    def read_json(cls, data: dict[str, Any]) -> TypeInformation:
        """The type that ``to_json`` gave ``data``."""

    @staticmethod
    def from_json(data: dict[str, Any]) -> TypeInformation:
        """The type of a stored form, of whatever kind."""
        cls = registry.kind_of(data.get("kind"))
        if cls is None:
            raise ProgramError(
                f"Unknown kind of type {data.get('kind')!r} in {data!r}; known are {registry.known_kinds()}. A type of "
                f"another package is known once its module is imported, or where its entry point (group "
                f"'{registry.GROUP}') is installed, in driver and executors."
            )
        return cls.read_json(data)

    @classmethod
    def names(cls) -> Names:
        """What else types of this class are called."""
        return Names()

    @classmethod
    def immutable_classes(cls) -> tuple[type, ...]:
        """Classes of values that nothing can change in place, besides those of Python that are known as such."""
        return ()

    @classmethod
    def takes(cls, candidate: Any) -> bool:
        """Whether a class of a program is declared by a type of this class."""
        return False

    @classmethod
    def of(cls, declared: type, type_of: Callable[[Any], TypeInformation]) -> TypeInformation:
        """The type of a class that ``takes`` takes; ``type_of`` resolves the types of its fields."""
        raise NotImplementedError

    @property
    def parts(self) -> tuple[TypeInformation, ...]:
        """The types of its fields, elements, or keys and values."""
        return ()

    @property
    def pickled(self) -> bool:
        """Whether reading a value of the type unpickles anything, at any depth."""
        return any(part.pickled for part in self.parts)

    def bare(self) -> TypeInformation:
        """The type without the classes of a program, which may have changed, or gone, since it was stored: rows in the
        place of instances. Both are stored alike.
        """
        return self

    # -- Arrow

    @abstractmethod
    def arrow_type(self) -> pa.DataType: ...

    @abstractmethod
    def column_reader(self) -> ColumnReader:
        """Reads columns of its Arrow type."""

    @abstractmethod
    def column_writer(self) -> ColumnWriter:
        """Writes columns of its Arrow type, and checks the values."""

    def column_check(self) -> ColumnCheck:
        """Whether values are surely what the reader gives for the column that the writer makes of them. A type that
        cannot tell has all of its values written and read where a follower is in the same task.
        """
        return never

    # -- text

    def text_form(self) -> Show:
        """How Flink writes values of the type, which are not None; as Python does where Flink has no such type."""
        return str

    # -- stored values

    @abstractmethod
    def stored_form(self) -> Form:
        """How values look inside stored bytes. Never another one for the same type: states are stored in it."""

    @abstractmethod
    def stored_column(self) -> Column:
        """The column of stored values in the table of a savepoint."""

    @property
    def cell_class(self) -> type | None:
        """The class of values that caches of states may hold as they are: they cannot be changed in place."""
        return None

    @property
    def in_numpy(self) -> bool:
        """Whether values are numbers, or booleans, that a column of numpy holds as they are."""
        return False

    @property
    def number(self) -> type | None:
        """The class of values that are numbers of a fixed width: int or float."""
        return None

    @property
    def unlimited(self) -> bool:
        """Whether values are numbers without limit, which are text in Arrow."""
        return False

    # -- keys

    def key_form(self) -> KeyForm:
        """How keys of this type are cast, hashed and encoded. Never in another way for the same type."""
        raise ProgramError(
            f"{self.describe()} cannot be the type of a key: a key is a number, text, bytes, a boolean, a date or "
            f"time, or a tuple, row, dataclass or list of these."
        )

    def key_column(self) -> Column:
        """The column of encoded keys in the table of a savepoint."""
        raise ProgramError(f"{self.describe()} cannot be the type of a key, and has no column of keys.")

    @property
    def key_in_arrow(self) -> bool:
        """Whether two keys are the same exactly when Arrow says so."""
        return False

    @property
    def groups_in_arrow(self) -> bool:
        """Whether Arrow groups rows by a column of such keys; ``KeyForm.same_column`` makes equal ones alike for it."""
        return False

    # -- changes between two runs of a program (see type_changes.py), each from another type

    def change_from(self, old: TypeInformation) -> Change | None:
        """How stored values of ``old`` become values of this type; None when they cannot."""
        return None

    def loses_nothing_of(self, old: TypeInformation) -> bool:
        """Whether different values of ``old`` stay different, where it may become this type."""
        return True

    def key_change_from(self, old: TypeInformation) -> KeyChange:
        """How keys of ``old`` become keys of this type, where it may become this type."""
        return same

    def keeps_hash_of(self, old: TypeInformation) -> bool:
        """Whether keys of ``old`` have the same hash as keys of this type."""
        return False

    def __str__(self) -> str:
        """As PyFlink writes it, where PyFlink has the type. Messages use ``describe``."""
        return self.describe()

    def __repr__(self) -> str:
        return str(self)
