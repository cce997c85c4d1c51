"""Windows of a fixed size with a function of the program (see ``fixed_windows``). A reduce or aggregate function sees
the rows of a key's window in their order, as one by one, and the windows one after the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.runtime.batch import Batch
from holdfast.runtime.event_times import Numbers
from holdfast.runtime.windowing.folding import Groups
from holdfast.runtime.windowing.group_folding import GroupFolding, PassingWindow
from holdfast.runtime.windowing.keys_of_batch import KeysOfBatch

if TYPE_CHECKING:
    from holdfast.runtime.windowing.operator import WindowOperator
    from holdfast.runtime.windowing.stored_contents import BatchContents


class FoldingByRow(GroupFolding):
    """Puts the rows of a group into the contents of its window in one go."""

    least_rows = 32
    by_column = False

    def __init__(self, operator: WindowOperator, contents: BatchContents, shared: bool) -> None:
        """``shared``: a row can be in several windows."""
        super().__init__(operator, contents)
        self._shared = shared

    def fits(self, batch: Batch) -> bool:
        # None empties a window.
        return not any([value is None for value in batch.values])

    def keys_of(self, batch: Batch) -> KeysOfBatch:
        return KeysOfBatch.of(*self.operator.keys_of(batch))

    def folded(
        self, batch: Batch, keys: KeysOfBatch, groups: Groups, rows: Numbers, before: list[Any]
    ) -> list[Any] | None:
        return self.contents.folded_groups(batch, keys, groups, rows, before)

    def fire_passing(self, passing: PassingWindow) -> None:
        operator, window, shared = self.operator, passing.window, self._shared
        context, function, elements_of = operator.key_context, operator.function, self.contents.elements_of
        at_window, given = operator.context.at(window), list[Any]()
        extend = given.extend
        try:
            for context.identity, context.key, kept in zip(passing.identities, passing.keys, passing.kept, strict=True):
                elements = [] if kept is None else elements_of(kept, shared)
                if elements and (results := function.process(context.key, at_window, elements)) is not None:
                    extend(operator.yielded(results))
                function.clear(at_window)
        except BaseException as error:
            raise operator.failure(error, f"timer at {window.max_timestamp()}", context.key) from error
        operator.emit_all(given, window.max_timestamp())
