"""Which downstream subtask a row goes to, decided for whole batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from holdfast.errors import HoldfastError, NullKeyError
from holdfast.runtime.batch import Batch
from holdfast.runtime.contracts import call
from holdfast.runtime.failures import function_failure
from holdfast.state.keys import KeyCodec
from holdfast.types.columns import Column
from holdfast.types.typeinfo import TypeInformation

if TYPE_CHECKING:
    from holdfast.runtime.context import RuntimeContext

Targets = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.int64]

#: How keys travel beside the rows: not at all, as columns of the rows, or in a column of their own.
NO_KEY, COLUMNS, LONG, STRING, ENCODED = "", "columns", "long", "string", "encoded"
KEY_COLUMN = "__key"
KEY_COLUMN_TYPES = {LONG: pa.int64(), STRING: pa.string(), ENCODED: pa.binary()}


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """The keys of a batch, as they travel."""

    form: str
    column: pa.Array | None = None


@dataclass(frozen=True, slots=True)
class Route:
    """Where the rows of a batch go. ``targets`` is None when all of them go to ``single``, or to everybody when that
    is None too. ``hashes`` are those of their keys, where that decided.
    """

    targets: Targets | None = None
    single: int | None = None
    keys: KeyColumn = KeyColumn(NO_KEY)
    hashes: Hashes | None = None


class Partitioner(ABC):
    """Chooses the subtasks that rows go to: ``bind`` gives the worker for one sending subtask. Picklable."""

    #: Each row goes to one subtask of the same number: such an edge can be chained.
    chainable = False
    name: str

    @abstractmethod
    def bind(self, subtask: int, parallelism: int, where: str) -> BoundPartitioner: ...

    def functions(self) -> dict[str, Any]:
        """The user's functions that it calls, by what they are."""
        return {}


class BoundPartitioner(ABC):
    @abstractmethod
    def route(self, batch: Batch, columns: pa.RecordBatch) -> Route: ...

    def open(self, runtime_context: RuntimeContext) -> None:
        """Before the first batch."""

    def begin_epoch(self, *seed: int) -> None:
        """Before the first batch of an epoch. ``seed`` is the same whenever the task of that epoch is run again."""

    def close(self) -> None:
        """The attempt ends in order."""


@dataclass(frozen=True)
class _Fixed(BoundPartitioner):
    result: Route

    def route(self, batch: Batch, columns: pa.RecordBatch) -> Route:
        return self.result


@dataclass(frozen=True)
class Forward(Partitioner):
    """Subtask i to subtask i."""

    chainable = True
    name = "FORWARD"

    def bind(self, subtask: int, parallelism: int, where: str) -> BoundPartitioner:
        return _Fixed(Route(single=subtask))


@dataclass(frozen=True)
class Global(Partitioner):
    """All rows to subtask 0."""

    name = "GLOBAL"

    def bind(self, subtask: int, parallelism: int, where: str) -> BoundPartitioner:
        return _Fixed(Route(single=0))


@dataclass(frozen=True)
class Broadcast(Partitioner):
    """Every row to every subtask."""

    name = "BROADCAST"

    def bind(self, subtask: int, parallelism: int, where: str) -> BoundPartitioner:
        return _Fixed(Route())


@dataclass(frozen=True)
class Rebalance(Partitioner):
    """Rows are dealt out round-robin, each sender beginning at its own number."""

    name = "REBALANCE"

    def bind(self, subtask: int, parallelism: int, where: str) -> BoundPartitioner:
        return _RoundRobin(subtask % parallelism, parallelism)


@dataclass(frozen=True)
class Shuffle(Partitioner):
    """Each row to any subtask, by chance. A task that is run again draws the same for the same rows."""

    name = "SHUFFLE"

    def bind(self, subtask: int, parallelism: int, where: str) -> BoundPartitioner:
        return _Random(subtask, parallelism)


class _Random(BoundPartitioner):
    def __init__(self, subtask: int, parallelism: int) -> None:
        self._subtask = subtask
        self._parallelism = parallelism

    def begin_epoch(self, *seed: int) -> None:
        self._random = np.random.default_rng([*seed, self._subtask])

    def route(self, batch: Batch, columns: pa.RecordBatch) -> Route:
        # One number for each row, so that it does not matter how rows are cut into batches.
        drawn = self._random.random(len(batch)) * self._parallelism
        return Route(drawn.astype(np.int64))


@dataclass(frozen=True)
class Rescale(Partitioner):
    """Rows are dealt out round-robin among the subtasks that a sender has for itself, or shares with others when there
    are fewer of them than senders. ``senders`` is known when the job is built.
    """

    senders: int = 1
    name = "RESCALE"

    def bind(self, subtask: int, parallelism: int, where: str) -> BoundPartitioner:
        place = subtask % self.senders
        first, end = place * parallelism // self.senders, (place + 1) * parallelism // self.senders
        return _RoundRobin(0, max(end - first, 1), first)


class _RoundRobin(BoundPartitioner):
    def __init__(self, start: int, targets: int, first: int = 0) -> None:
        self._next = start
        self._targets = targets
        self._first = first

    def route(self, batch: Batch, columns: pa.RecordBatch) -> Route:
        count = len(batch)
        targets = (np.arange(count, dtype=np.int64) + self._next) % self._targets
        self._next = (self._next + count) % self._targets
        return Route(targets + self._first)


@dataclass(frozen=True)
class KeyGroupHash(Partitioner):
    """Rows to the subtask that owns their key's group. The key is columns of the row, or what ``selector`` says, a
    function or a KeySelector.
    """

    key_type: TypeInformation
    max_parallelism: int
    columns: tuple[str, ...] = ()
    selector: Any = None
    name = "HASH"

    def bind(self, subtask: int, parallelism: int, where: str) -> BoundPartitioner:
        codec = KeyCodec.for_type(self.key_type)
        targets = _KeyGroupTargets(self.max_parallelism, parallelism)
        if self.selector is None:
            return _ByColumns(self.columns, codec, targets, where)
        return _BySelector(self.selector, codec, targets, where)

    def functions(self) -> dict[str, Any]:
        return {} if self.selector is None else {"key selector": self.selector}


@dataclass(frozen=True, slots=True)
class _KeyGroupTargets:
    max_parallelism: int
    parallelism: int

    def of(self, hashes: npt.NDArray[np.int64]) -> Targets:
        # numpy's remainder has the sign of the divisor, as Spark's pmod has.
        groups = np.remainder(hashes, np.int64(self.max_parallelism))
        return groups * self.parallelism // self.max_parallelism


class _ByColumns(BoundPartitioner):
    def __init__(self, columns: Sequence[str], codec: KeyCodec, targets: _KeyGroupTargets, where: str) -> None:
        self._columns = columns
        self._codec = codec
        self._targets = targets
        self._where = where

    def route(self, batch: Batch, columns: pa.RecordBatch) -> Route:
        arrays = [columns.column(name) for name in self._columns]
        single = arrays[0] if len(arrays) == 1 else None
        if single is not None and single.null_count:
            row = batch.values[int(np.flatnonzero(single.is_null().to_numpy(zero_copy_only=False))[0])]
            raise NullKeyError(
                f"{self._where}: the key column '{self._columns[0]}' is null in row {row!r}. Filter such rows out or "
                "give them a key."
            )
        # A composite key may have fields that are null: it is a key all the same.
        hashes = self._codec.hash_array(arrays if single is None else single)
        return Route(self._targets.of(hashes), keys=KeyColumn(COLUMNS), hashes=hashes)


#: The forms in which keys of a class travel.
_FORMS: dict[type, str] = {int: LONG, str: STRING}


class _BySelector(BoundPartitioner):
    def __init__(self, selector: Any, codec: KeyCodec, targets: _KeyGroupTargets, where: str) -> None:
        self._function = selector
        self._selector: Callable[[Any], Any] = getattr(selector, "get_key", selector)
        self._codec = codec
        self._targets = targets
        self._where = where
        #: Forms in which a key that is already what its type casts to may travel.
        self._plain_forms = frozenset(_FORMS[cls] for cls in codec.normal_classes if cls in _FORMS)

    def open(self, runtime_context: RuntimeContext) -> None:
        self._call("set_runtime_context", runtime_context)
        self._call("open", runtime_context)

    def close(self) -> None:
        self._call("close")

    def _call(self, name: str, *arguments: Any) -> None:
        try:
            call(self._function, name, *arguments)
        except BaseException as error:
            said = f"{name}() of the key selector raised {type(error).__name__}: {error}"
            raise function_failure(said, error).at(operator=self._where) from error

    def route(self, batch: Batch, columns: pa.RecordBatch) -> Route:
        keys = self._select(batch.values)
        kinds = set(map(type, keys))
        form = LONG if kinds == {int} else STRING if kinds == {str} else ENCODED
        if form in self._plain_forms:
            try:
                column, hashes = pa.array(keys, KEY_COLUMN_TYPES[form]), self._codec.hash_many(keys)
                return Route(self._targets.of(hashes), keys=KeyColumn(form, column), hashes=hashes)
            except (OverflowError, UnicodeEncodeError, pa.ArrowException, HoldfastError):
                pass  # a key that does not fit: the other path finds it and names its row
        return self._route_encoded(keys, batch)

    def _select(self, values: list[Any]) -> list[Any]:
        value: Any = None
        keys: list[Any] = []
        append, selector = keys.append, self._selector
        try:
            for value in values:
                append(selector(value))
        except BaseException as error:
            said = f"the key selector raised {type(error).__name__}: {error}"
            raise function_failure(said, error).at(operator=self._where, row=repr(value)) from error
        if None in keys:
            raise NullKeyError(
                f"{self._where}: the key of row {values[keys.index(None)]!r} is None. Filter such rows out or give "
                "them a key."
            )
        return keys

    def _route_encoded(self, keys: list[Any], batch: Batch) -> Route:
        codec = self._codec
        encoded: list[bytes] = []
        hashes = np.empty(len(keys), dtype=np.int64)
        for position, key in enumerate(keys):
            try:
                key = codec.normalise(key)
                encoded.append(codec.encode(key))
                hashes[position] = codec.hash(key)
            except HoldfastError as error:
                raise error.at(operator=self._where, row=repr(batch.values[position])) from error.__cause__
        column = pa.array(encoded, pa.binary())
        return Route(self._targets.of(hashes), keys=KeyColumn(ENCODED, column), hashes=hashes)


class KeyReader:
    """The keys of received rows as Python values."""

    def __init__(self, partitioner: KeyGroupHash) -> None:
        self._codec = KeyCodec.for_type(partitioner.key_type)
        self._columns = partitioner.columns

    def read(self, form: str, batch: pa.RecordBatch) -> list[Any]:
        if form == COLUMNS:
            return self._from_columns(batch)
        keys: list[Any] = batch.column(KEY_COLUMN).to_pylist()
        if form != ENCODED:
            return keys
        decoded = {data: self._codec.decode(data) for data in set(keys)}
        return [decoded[data] for data in keys]

    def column(self, form: str, batch: pa.RecordBatch) -> pa.Array:
        """The keys as a column of the Arrow type of their declared type; equal ones are equal to Arrow."""
        if form == ENCODED:
            return self._column.write(self.read(form, batch))
        if form != COLUMNS:
            return self._codec.same_column(self._column.conform(batch.column(KEY_COLUMN)))
        columns = [batch.column(name) for name in self._columns]
        if len(columns) == 1:
            return self._codec.same_column(self._column.conform(columns[0]))
        return self._codec.same_column(pa.StructArray.from_arrays(columns, fields=list(self._column.arrow_type)))

    @cached_property
    def _column(self) -> Column:
        return Column(self._codec.type_info, "the keys of the stream")

    def _from_columns(self, batch: pa.RecordBatch) -> list[Any]:
        columns = [batch.column(name) for name in self._columns]
        parts = [read(column) for read, column in zip(self._readers, columns, strict=True)]
        keys: list[Any] = parts[0] if len(parts) == 1 else list(zip(*parts, strict=True))
        if len(columns) == 1 and _class_in(columns[0].type) in self._codec.column_classes:
            return keys
        return [self._codec.normalise(key) for key in keys]

    @cached_property
    def _readers(self) -> list[Callable[[pa.Array], list[Any]]]:
        """One for each column of the key; a column whose type was left open has the values that Arrow gives."""
        key_type = self._codec.type_info
        types = (key_type,) if len(self._columns) == 1 else key_type.parts
        return [Column(one, "the keys of the stream").read if one.declared else pa.Array.to_pylist for one in types]


def _class_in(column_type: pa.DataType) -> type | None:
    """The class of values in columns of whole numbers and of text."""
    return int if pa.types.is_integer(column_type) else str if pa.types.is_string(column_type) else None
