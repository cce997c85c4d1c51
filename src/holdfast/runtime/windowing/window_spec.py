"""What a program says of its windows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from holdfast.runtime.output_tag import OutputTag
from holdfast.runtime.row_path import RowPath
from holdfast.runtime.windowing.assigners import WindowAssigner
from holdfast.runtime.windowing.co_group import Sides
from holdfast.runtime.windowing.contents import Contents
from holdfast.runtime.windowing.functions import WindowProcess
from holdfast.runtime.windowing.triggers import Trigger


@dataclass(frozen=True)
class WindowSpec:
    """The parts that a window operator is made of."""

    assigner: WindowAssigner[Any, Any]
    trigger: Trigger[Any, Any]
    contents: Contents
    function: WindowProcess
    allowed_lateness: int = 0
    late_tag: OutputTag | None = None
    #: Set where two streams come into the same windows.
    sides: Sides | None = None
    path: RowPath = field(default_factory=RowPath)
