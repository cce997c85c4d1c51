"""Types of values of a class that are stored as values of another type: what programs and packages add types with."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeGuard

import pyarrow as pa

from holdfast.types import xxhash64
from holdfast.types.arrow_read import ColumnReader
from holdfast.types.arrow_write import ColumnWriter
from holdfast.types.column_checks import ColumnCheck, of_class
from holdfast.types.contract import TypeInformation
from holdfast.types.key_forms import KeyForm
from holdfast.types.registry import AvroReader, DdlWord, Names
from holdfast.types.storage_scalars import Form, Mismatch
from holdfast.types.table_columns import Column
from holdfast.types.type_changes import Change, change_between, keeps_hash, loses_nothing


@dataclass(frozen=True, repr=False)
class LogicalTypeInfo(TypeInformation):
    """Values of one class, which are stored, hashed and sent as values of another type.

    A type of your own is a subclass under ``register_type``, in a module that driver and executors import. It gives
    ``kind``, ``label`` and ``value_class``, and three methods: ``stored_as``, ``to_stored`` and ``from_stored``. These
    run once for each value, in the driver and in every task, and must give the same for the same value in every version
    of the program: states, keys and hashes are made of it.

    With parameters, as those of a decimal, it is a frozen dataclass with its own ``names``, ``to_json`` and
    ``read_json``.
    """

    #: Under which it is described, such as ``IPV4``.
    label: ClassVar[str]
    #: The class of values; instances of subclasses are taken, and come back as ``from_stored`` makes them.
    value_class: ClassVar[type]
    #: True when nothing changes a value in place: it is shared then where others are copied.
    values_are_immutable: ClassVar[bool] = False
    #: Words of DDL, in lower case, and names of logical types in Avro schemas.
    ddl_words: ClassVar[tuple[str, ...]] = ()
    avro_logical_types: ClassVar[tuple[str, ...]] = ()

    @property
    @abstractmethod
    def stored_as(self) -> TypeInformation:
        """The type of what ``to_stored`` gives."""

    @abstractmethod
    def to_stored(self, value: Any) -> Any:
        """What is stored for a value, never None. ValueError says why a value cannot be stored."""

    @abstractmethod
    def from_stored(self, stored: Any) -> Any:
        """The value that something was stored for; where the class defines it, equal to that value."""

    @classmethod
    def names(cls) -> Names:
        made = cls()

        def read_avro(schema: Any, read: Callable[[Any], Any]) -> tuple[TypeInformation, Callable[[Any], Any]]:
            return made, lambda found: made.from_stored(read(found))

        readers: dict[str, AvroReader] = dict.fromkeys(cls.avro_logical_types, read_avro)
        words = dict.fromkeys(cls.ddl_words, DdlWord(lambda: made))
        return Names(ddl=words, python={cls.value_class: made}, avro_logical=readers)

    @classmethod
    def immutable_classes(cls) -> tuple[type, ...]:
        return (cls.value_class,) if cls.values_are_immutable else ()

    @property
    def immutable(self) -> bool:
        return self.values_are_immutable

    def describe(self) -> str:
        return self.label

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind}

    @classmethod
    def read_json(cls, data: dict[str, Any]) -> Self:
        return cls()

    @property
    def parts(self) -> tuple[TypeInformation, ...]:
        return (self.stored_as,)

    def arrow_type(self) -> pa.DataType:
        return self.stored_as.arrow_type()

    def column_reader(self) -> ColumnReader:
        read, from_stored = self.stored_as.column_reader(), self.from_stored
        return lambda array: [None if stored is None else from_stored(stored) for stored in read(array)]

    def column_writer(self) -> ColumnWriter:
        write_stored, to_stored, allowed = self.stored_as.column_writer(), self.to_stored, self.value_class

        def write(values: Sequence[Any]) -> pa.Array:
            for cls in set(map(type, values)):
                if cls is not type(None) and not issubclass(cls, allowed):
                    raise TypeError(f"{cls.__name__} is not {self.describe()}")
            return write_stored([None if value is None else to_stored(value) for value in values])

        return write

    def column_check(self) -> ColumnCheck:
        check_stored, to_stored = self.stored_as.column_check(), self.to_stored

        def check(values: Sequence[Any]) -> bool:
            try:
                return check_stored(list(map(to_stored, values)))
            except Exception:  # whatever the method raises: the writer says where
                return False

        return of_class(self.value_class, check)

    def stored_form(self) -> Form:
        form, allowed = self.stored_as.stored_form(), self.value_class
        to_stored, from_stored = self.to_stored, self.from_stored
        pack_stored, unpack_stored = form.pack, form.unpack

        def pack(value: Any) -> Any:
            if not isinstance(value, allowed):
                raise Mismatch(self, value)
            try:
                stored = to_stored(value)
            except ValueError as error:
                raise Mismatch(self, value, f" ({error})") from error
            return pack_stored(stored)

        unpack = from_stored if unpack_stored is None else lambda stored: from_stored(unpack_stored(stored))
        return Form(form.stored_type, pack, unpack, ranged=form.ranged, framed=form.framed)

    def stored_column(self) -> Column:
        return self.stored_as.stored_column()

    @property
    def cell_class(self) -> type | None:
        return self.value_class if self.values_are_immutable else None

    def key_form(self) -> KeyForm:
        return _LogicalForm(self, self.stored_as.key_form())

    def key_column(self) -> Column:
        return self.stored_as.key_column()

    @property
    def groups_in_arrow(self) -> bool:
        return self.stored_as.groups_in_arrow

    def change_from(self, old: TypeInformation) -> Change | None:
        """As what it is stored as may change."""
        return change_between(old.stored_as, self.stored_as) if _alike(old, self) else None

    def loses_nothing_of(self, old: TypeInformation) -> bool:
        return not _alike(old, self) or loses_nothing(old.stored_as, self.stored_as)

    def keeps_hash_of(self, old: TypeInformation) -> bool:
        return _alike(old, self) and keeps_hash(old.stored_as, self.stored_as)

    def __repr__(self) -> str:
        return self.describe()


def _alike(old: TypeInformation, new: LogicalTypeInfo) -> TypeGuard[LogicalTypeInfo]:
    return type(old) is type(new)


class _LogicalForm(KeyForm):
    """Keys that are hashed and encoded as keys of the type as which they are stored."""

    def __init__(self, type_info: LogicalTypeInfo, stored: KeyForm) -> None:
        super().__init__(type_info.describe())
        self._class = type_info.value_class
        self._to_stored, self._from_stored = type_info.to_stored, type_info.from_stored
        self._form = stored

    def _stored(self, key: Any) -> Any:
        if not isinstance(key, self._class):
            self.reject(key)
        try:
            return self._to_stored(key)
        except ValueError:
            self.reject(key)

    def normalise(self, key: Any) -> Any:
        return self._from_stored(self._form.normalise(self._stored(key)))

    def hash(self, key: Any, seed: int = xxhash64.SEED) -> int:
        return self._form.hash(self._stored(key), seed)

    def encode(self, key: Any) -> bytes:
        return self._form.encode(self._stored(key))

    def decode(self, data: bytes) -> Any:
        return self._from_stored(self._form.decode(data))

    def identity(self, key: Any) -> Hashable:
        return self._form.identity(self._stored(key))

    def hash_array(self, column: pa.Array) -> pa.Array:
        return self._form.hash_array(column)

    def same_column(self, column: pa.Array) -> pa.Array:
        return self._form.same_column(column)
