"""Functions on streams that are connected to a broadcast stream, and what they must give."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from holdfast.common import Types
from holdfast.datastream import (
    BroadcastProcessFunction,
    CheckpointedFunction,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    KeyedBroadcastProcessFunction,
    RuntimeContext,
)
from holdfast.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor

FACTORS = MapStateDescriptor("factors", Types.STRING(), Types.LONG())
TOTAL = ValueStateDescriptor("total", Types.LONG())
VALUES = ListStateDescriptor("values", Types.LONG())
REPORT = Types.TUPLE([Types.STRING(), Types.LONG(), Types.STRING()])

Row = tuple[str, int, str]


class Tagged(BroadcastProcessFunction):
    """Every row with all factors, in the order of the state; broadcast elements are (name, factor or None)."""

    def process_element(self, value: Any, ctx: BroadcastProcessFunction.ReadOnlyContext) -> Iterator[Any]:
        yield value, list(ctx.get_broadcast_state(FACTORS).items())

    def process_broadcast_element(self, value: Any, ctx: BroadcastProcessFunction.Context) -> None:
        state = ctx.get_broadcast_state(FACTORS)
        if value[1] is None:
            state.remove(value[0])
        else:
            state.put(*value)


class AllStates(KeyedBroadcastProcessFunction, CheckpointedFunction):
    """Keyed, list, union list and broadcast state in one function.

    Rows are (key, value): the key's total grows by value times the sum of all factors, and is emitted.
    Broadcast elements are ("factor", name, n), ("scale", n), which multiplies all totals, and ("report",), for which
    every subtask tells what it holds. Every row is kept in list state; the union list has one element per subtask.
    """

    def __init__(self) -> None:
        self.kept: list[str] = []
        self.union: list[str] = []

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        store = context.get_operator_state_store()
        self.list_state = store.get_list_state(ListStateDescriptor("kept", Types.STRING()))
        self.union_state = store.get_union_list_state(ListStateDescriptor("union", Types.STRING()))
        self.kept, self.union = list(self.list_state.get()), list(self.union_state.get())

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        self.list_state.update(self.kept)
        self.union_state.update([self.me])

    def open(self, runtime_context: RuntimeContext) -> None:
        self.total = runtime_context.get_state(TOTAL)
        self.values = runtime_context.get_list_state(VALUES)
        self.subtask = runtime_context.get_index_of_this_subtask()
        self.me = f"{self.subtask}/{runtime_context.get_number_of_parallel_subtasks()}"

    def process_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> Iterator[Row]:
        factor = sum(ctx.get_broadcast_state(FACTORS).values())
        total = (self.total.value() or 0) + value[1] * factor
        self.total.update(total)
        self.values.add(value[1])
        self.kept.append(f"{value[0]}:{value[1]}")
        yield "row", value[0], json.dumps([value[1], total])

    def process_broadcast_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.Context) -> Iterator[Row]:
        if value[0] == "factor":
            ctx.get_broadcast_state(FACTORS).put(value[1], value[2])
        elif value[0] == "scale":
            ctx.apply_to_keyed_state(TOTAL, lambda key, total: total.update(total.value() * value[1]))
        else:
            yield from self._report(ctx)

    def _report(self, ctx: KeyedBroadcastProcessFunction.Context) -> Iterator[Row]:
        totals: list[tuple[int, int]] = []
        values: list[tuple[int, list[int]]] = []
        ctx.apply_to_keyed_state(TOTAL, lambda key, total: totals.append((key, total.value())))
        ctx.apply_to_keyed_state(VALUES, lambda key, listed: values.append((key, list(listed))))
        for name, content in (
            ("totals", totals),
            ("values", values),
            ("kept", self.kept),
            ("union", self.union),
            ("factors", list(ctx.get_broadcast_state(FACTORS).items())),
        ):
            yield name, self.subtask, json.dumps(content)


class Model:
    """What ``AllStates`` must hold and give, whatever the parallelism."""

    def __init__(self) -> None:
        self.factors: dict[str, int] = {}
        self.totals: dict[int, int] = {}
        self.values: dict[int, list[int]] = {}
        self.kept: list[str] = []

    def epoch(self, elements: list[Any], rows: list[tuple[int, int]]) -> list[Row]:
        """One epoch: all broadcast elements, then all rows; the rows that come out, without reports."""
        for element in elements:
            if element[0] == "factor":
                self.factors[element[1]] = element[2]
            elif element[0] == "scale":
                self.totals = {key: total * element[1] for key, total in self.totals.items()}
        out: list[Row] = []
        for key, value in rows:
            self.totals[key] = self.totals.get(key, 0) + value * sum(self.factors.values())
            self.values.setdefault(key, []).append(value)
            self.kept.append(f"{key}:{value}")
            out.append(("row", key, json.dumps([value, self.totals[key]])))
        return out

    def audit(self, reports: list[Row], parallelism: int, union: list[str]) -> None:
        """Compare what the subtasks reported with what they must hold together."""
        found: dict[str, list[Any]] = {}
        for name, _, content in sorted(reports, key=lambda row: row[1]):
            found.setdefault(name, []).append(json.loads(content))
        assert sorted(pair for part in found["totals"] for pair in part) == sorted(map(list, self.totals.items()))
        assert sorted(pair for part in found["values"] for pair in part) == sorted(map(list, self.values.items()))
        assert sorted(row for part in found["kept"] for row in part) == sorted(self.kept)
        assert found["union"] == [union] * parallelism
        assert found["factors"] == [[list(pair) for pair in self.factors.items()]] * parallelism
