"""What window assigners are given."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.runtime.context import RuntimeContext


class WindowAssignerContext:
    """The context of window assigners."""

    def __init__(self, runtime_context: RuntimeContext) -> None:
        self._runtime_context = runtime_context
        #: Set by the operator for each batch.
        self.processing_time = 0

    def get_current_processing_time(self) -> int:
        return self.processing_time

    def get_runtime_context(self) -> RuntimeContext:
        """Keyed state of the current key, which all its windows share."""
        return self._runtime_context
