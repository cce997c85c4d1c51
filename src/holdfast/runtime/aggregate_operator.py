"""The operator of known aggregates, which has their state."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from holdfast.runtime.aggregates import Aggregation
from holdfast.runtime.grouping import combine_partials, merge
from holdfast.runtime.keyed_batch import KeyedBatchContext, KeyedBatchOperator
from holdfast.runtime.plan import OperatorSpec
from holdfast.state.descriptors import ValueStateDescriptor

_STATE = "aggregates"
#: Keys whose results leave in one batch at the end of the input.
_KEYS_AT_ONCE = 65_536


class AggregateOperator(KeyedBatchOperator):
    """Keeps the partial columns of each key, and gives the results of the keys that had rows, once in an epoch; in a
    batch at the end of the input, those of all keys. The rows that it gets are combined.
    """

    def __init__(self, spec: OperatorSpec) -> None:
        super().__init__(spec)
        self._aggregation: Aggregation = self.body

    def bind_state(self) -> None:
        super().bind_state()
        self._descriptor = ValueStateDescriptor(_STATE, self._aggregation.state_type())
        self._state = self.keyed_state.state(self._descriptor)

    def process_batch(self, keys: pa.Array, rows: pa.RecordBatch, context: KeyedBatchContext) -> Any:
        # Not by the columns of the rows: of equal keys only those of the exchange are alike.
        combined = combine_partials(self._aggregation, self._columns_of(keys), rows)
        key_columns = combined.columns[: len(self._aggregation.key_columns)]
        distinct = self._key_of(key_columns, keys.type)
        before = self._state.get_many(distinct)
        arrived = combined.columns[len(key_columns) :]
        kept = merge(self._aggregation.partials, before.flatten(), arrived)
        self._state.put_many(distinct, pa.StructArray.from_arrays(kept, fields=list(before.type)))
        return None if self.spec.batch else self._aggregation.results(key_columns, kept)

    def finish(self) -> None:
        super().finish()
        if self.spec.batch:
            self._emit_all()

    def _emit_all(self) -> None:
        keys: list[Any] = []
        self.keyed_state.apply_to_all_keys(self._descriptor, lambda key, state: keys.append(key))
        for start in range(0, len(keys), _KEYS_AT_ONCE):
            self._emit_results(self.keyed_state.key_column(keys[start : start + _KEYS_AT_ONCE]))

    def _emit_results(self, keys: pa.Array) -> None:
        results = self._aggregation.results(self._columns_of(keys), self._state.get_many(keys).flatten())
        self._hand_on(results, KeyedBatchContext())

    def _columns_of(self, keys: pa.Array) -> list[pa.Array]:
        return keys.flatten() if len(self._aggregation.key_columns) > 1 else [keys]

    def _key_of(self, columns: list[pa.Array], key_type: pa.DataType) -> pa.Array:
        if len(columns) == 1:
            return columns[0].cast(key_type)
        return pa.StructArray.from_arrays(columns, fields=list(key_type))
