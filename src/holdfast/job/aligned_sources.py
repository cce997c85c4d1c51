"""How far the sources of each watermark group have come, and how far each of their subtasks may read. Pure: what tasks
acknowledged in, bounds out. Nothing of it is stored: a restored job finds it in the watermarks of its checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from holdfast.runtime.alignment import UNBOUNDED, UNKNOWN, WatermarkAlignment
from holdfast.runtime.epoch import Acknowledgement
from holdfast.runtime.operator import MAX_WATERMARK, MIN_WATERMARK
from holdfast.runtime.plan import OperatorSpec
from holdfast.state.handles import OperatorRecord

_Subtask = tuple[str, int]


@dataclass(frozen=True)
class _Reached:
    """Where a subtask is. It holds others back unless its input is idle or has ended."""

    watermark: int = MIN_WATERMARK
    active: bool = True


class AlignedSources:
    """The bounds of an attempt, epoch by epoch.

    A subtask waits for the others of its group, and not for itself: one that is behind may catch up in one epoch. So
    none is ever further ahead of the slowest than its drift and a batch.
    """

    def __init__(self, operators: Sequence[OperatorSpec], restored: Iterable[OperatorRecord] = ()) -> None:
        self._alignments = {o.operator_id: o.alignment for o in operators if o.alignment is not None}
        self._parallelism = {o.operator_id: o.parallelism for o in operators if o.alignment is not None}
        self._reached = {
            (operator_id, subtask): _Reached()
            for operator_id, parallelism in self._parallelism.items()
            for subtask in range(parallelism)
        }
        for record in restored:
            if record.operator_id in self._alignments:
                self._restore(record)

    def __bool__(self) -> bool:
        """Whether the job has any."""
        return bool(self._alignments)

    def take_in(self, acknowledgements: Iterable[Acknowledgement]) -> None:
        """What the tasks of an accepted epoch told."""
        if not self._alignments:
            return
        for one in (each for acknowledgement in acknowledgements for each in acknowledgement.progress):
            if one.operator_id in self._alignments:
                self._reached[one.operator_id, one.subtask] = _Reached(one.watermark, not (one.idle or one.ended))

    def bounds(self) -> dict[str, tuple[int, ...]]:
        """The watermark behind which each subtask stops in the next epoch, by operator."""
        groups: dict[str, dict[_Subtask, int]] = {}
        for subtask, reached in self._reached.items():
            if reached.active:
                groups.setdefault(self._alignments[subtask[0]].group, {})[subtask] = reached.watermark
        slowest = {group: sorted(active.items(), key=lambda each: each[1]) for group, active in groups.items()}
        return {
            operator_id: tuple(
                _bound(alignment, (operator_id, subtask), slowest.get(alignment.group, []))
                for subtask in range(self._parallelism[operator_id])
            )
            for operator_id, alignment in self._alignments.items()
        }

    def _restore(self, record: OperatorRecord) -> None:
        """Each subtask begins where it was; with another parallelism, where all that go on had come to."""
        operator_id, going_on = record.operator_id, [each for each in record.subtasks if not each.finished]
        same = record.parallelism == self._parallelism[operator_id]
        own = {each.subtask: each.watermark for each in going_on} if same else {}
        slowest = min((each.watermark for each in going_on if each.watermark is not None), default=None)
        for subtask in range(self._parallelism[operator_id]):
            watermark = own.get(subtask, slowest)
            active = bool(going_on) and not (same and subtask not in own)
            self._reached[operator_id, subtask] = _Reached(MIN_WATERMARK if watermark is None else watermark, active)


def _bound(alignment: WatermarkAlignment, subtask: _Subtask, active: list[tuple[_Subtask, int]]) -> int:
    """``active`` are those of the group, the slowest first; those that have said nothing yet are the slowest."""
    others = [watermark for other, watermark in active if other != subtask]
    known = next((watermark for watermark in others if watermark != MIN_WATERMARK), None)
    if known is not None:
        return min(known + alignment.max_drift_ms, MAX_WATERMARK)
    return UNKNOWN if others else UNBOUNDED
