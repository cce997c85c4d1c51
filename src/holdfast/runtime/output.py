"""What an operator hands rows to: everything that listens to it, and to its side outputs."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any, Protocol

from holdfast.errors import FunctionError
from holdfast.runtime.batch import Batch
from holdfast.runtime.declared_rows import DeclaredRows
from holdfast.runtime.output_tag import OutputTag

if TYPE_CHECKING:
    from holdfast.runtime.operator import Operator


_first = itemgetter(0)


class Collector(Protocol):
    """Where batches go: the next operator of the chain, or a router."""

    def collect(self, batch: Batch) -> None: ...


class Output:
    """Everything that listens to one operator."""

    def __init__(self) -> None:
        self._collectors: list[Collector] = []
        self._operators: list[Operator] = []
        #: Where somebody looks at the rows in this task, and they may not be in the form of their type.
        self._declared: DeclaredRows | None = None
        self.rows = 0

    def add_operator(self, operator: Operator) -> None:
        self._operators.append(operator)

    def add_collector(self, collector: Collector) -> None:
        self._collectors.append(collector)

    def give_declared(self, declared: DeclaredRows) -> None:
        """From now on all followers get rows in the form of their declared type."""
        self._declared = declared

    def collect(self, batch: Batch) -> None:
        rows = len(batch)
        if not rows:
            return
        self.rows += rows
        if self._declared is not None:
            batch = self._declared.of(batch)
        for collector in self._collectors:
            collector.collect(batch)
        for operator in self._operators:
            operator.rows_in += rows
            operator.process(batch, 0)

    def collect_untagged(self, batch: Batch) -> None:
        """Rows among which there is none for a side output."""
        Output.collect(self, batch)

    def collect_side(self, tag_id: str, batch: Batch) -> None:
        """Rows for a side output, as they are. Nobody listens to it: they are dropped."""

    def side(self, tag_id: str) -> Output:
        """What listens to a side output."""
        raise NotImplementedError("the plan gives an operator with side outputs a SplittingOutput")

    def emit_watermark(self, watermark: int) -> None:
        for operator in self._operators:
            operator.process_watermark(watermark)


class SplittingOutput(Output):
    """The output of an operator whose function may yield ``(tag, row)``, or whose side outputs somebody listens to.

    Rows are looked at a batch at a time, and only in a process that has made a tag.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name
        self._sides: dict[str, Output] = {}

    def side(self, tag_id: str) -> Output:
        return self._sides.setdefault(tag_id, Output())

    def collect(self, batch: Batch) -> None:
        super().collect(self._untagged(batch) if OutputTag.any_made else batch)

    def collect_side(self, tag_id: str, batch: Batch) -> None:
        listening = self._sides.get(tag_id)
        if listening is not None:
            self.rows += len(batch)
            listening.collect(batch)

    def emit_watermark(self, watermark: int) -> None:
        super().emit_watermark(watermark)
        for side in self._sides.values():
            side.emit_watermark(watermark)

    def _untagged(self, batch: Batch) -> Batch:
        """The rows without a tag; those with one go to its side output."""
        values = batch.values
        if not _may_have_tags(values):
            return batch
        tagged = [i for i, row in enumerate(values) if type(row) is tuple and row and type(row[0]) is OutputTag]
        if not tagged:
            return batch
        by_tag: dict[str, list[int]] = {}
        for position in tagged:
            by_tag.setdefault(values[position][0].tag_id, []).append(position)
        for tag_id, positions in by_tag.items():
            rows = [self._row_of(values[position]) for position in positions]
            self.collect_side(tag_id, batch.at(positions, rows))
        rest = sorted(set(range(len(values))).difference(tagged))
        return batch.at(rest, [values[position] for position in rest])

    def _row_of(self, tagged: tuple[Any, ...]) -> Any:
        if len(tagged) != 2:
            raise FunctionError(
                f"operator '{self._name}': a row for the side output '{tagged[0].tag_id}' is a pair of the tag and the "
                f"row; got a tuple of {len(tagged)}: {tagged!r}"
            )
        return tagged[1]


def _may_have_tags(rows: list[Any]) -> bool:
    """False for rows among which there is surely no pair of a tag and a row. All of it runs outside of the
    interpreter's loop: where nobody uses tags, this is what they cost.
    """
    kinds = set(map(type, rows))
    if kinds != {tuple}:
        return tuple in kinds
    try:
        return OutputTag in set(map(type, map(_first, rows)))
    except IndexError:
        return True
