"""Tags of side outputs: a function gives a row to one by yielding ``(tag, row)``."""

from __future__ import annotations

from typing import Any, ClassVar, final

from holdfast.coverage.answers import SaysWhatToUse
from holdfast.errors import InvalidValueError
from holdfast.types.immutable import declare_immutable
from holdfast.types.resolve import resolve
from holdfast.types.typeinfo import TypeInformation, Types


@final
class OutputTag(SaysWhatToUse):
    """The name and the type of a side output. Tags with one name are one tag, wherever they were made.

    A list of types stands for a row of them; without a type the rows are pickled.
    """

    #: Whether this process has ever made a tag. As long as it has not, no row can be for a side output.
    any_made: ClassVar[bool] = False

    def __init__(self, tag_id: str, type_info: Any = None) -> None:
        if not isinstance(tag_id, str) or not tag_id:
            raise InvalidValueError(f"An OutputTag needs a name, a text that is not empty; got {tag_id!r}.")
        self.tag_id = tag_id
        self.type_info: TypeInformation = Types.ROW(type_info) if isinstance(type_info, list) else resolve(type_info)
        OutputTag.any_made = True

    def __reduce__(self) -> tuple[type[OutputTag], tuple[str, TypeInformation]]:
        # Through the constructor, so that a process that is given a tag knows that there are some.
        return OutputTag, (self.tag_id, self.type_info)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OutputTag) and other.tag_id == self.tag_id

    def __hash__(self) -> int:
        return hash(self.tag_id)

    def __repr__(self) -> str:
        return f"OutputTag({self.tag_id!r}, {self.type_info.describe()})"


# It is in front of every row that goes to a side output.
declare_immutable(OutputTag)
