"""What becomes of rows with tags."""

from __future__ import annotations

import pytest

from holdfast.errors import FunctionError
from holdfast.runtime.batch import Batch
from holdfast.runtime.output import SplittingOutput
from holdfast.runtime.output_tag import OutputTag

LATE, EARLY = OutputTag("late"), OutputTag("early")


class Collected:
    def __init__(self) -> None:
        self.rows: list[tuple[object, object, object]] = []

    def collect(self, batch: Batch) -> None:
        times = batch.timestamps or [None] * len(batch)
        self.rows += zip(batch.values, times, batch.watermarks or [None] * len(batch), strict=True)


@pytest.fixture
def output() -> SplittingOutput:
    return SplittingOutput("op")


def listen(output: SplittingOutput, tag: OutputTag | None = None) -> Collected:
    collected = Collected()
    (output if tag is None else output.side(tag.tag_id)).add_collector(collected)
    return collected


def test_rows_keep_their_times_wherever_they_go(output: SplittingOutput) -> None:
    main, late, again = listen(output), listen(output, LATE), listen(output, LATE)
    output.collect(Batch([1, (LATE, 2), (EARLY, 3), 4, (LATE, (5, 6))], [10, 20, 30, 40, 50], [0, 1, 2, 3, 4]))
    assert main.rows == [(1, 10, 0), (4, 40, 3)]
    assert late.rows == again.rows == [(2, 20, 1), ((5, 6), 50, 4)]
    assert output.rows == 4, "what nobody listens to does not count"


def test_rows_that_only_look_like_tagged_ones(output: SplittingOutput) -> None:
    main, rows = listen(output), [(), ("late", 1), [LATE, 1], LATE]
    output.collect(Batch(rows))
    assert [row for row, _, _ in main.rows] == rows


def test_a_tag_without_a_row(output: SplittingOutput) -> None:
    listen(output, LATE)
    with pytest.raises(
        FunctionError, match=r"operator 'op': a row for the side output 'late' is a pair .*a tuple of 3"
    ):
        output.collect(Batch([(LATE, 1, 2)]))


def test_without_tags_in_the_process_rows_are_not_looked_at(
    output: SplittingOutput, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OutputTag, "any_made", False)
    main, given = listen(output), Batch([1, 2])
    output.collect(given)
    assert [row for row, _, _ in main.rows] == [1, 2]
    monkeypatch.setattr(output, "_untagged", None)
    output.collect(given)
    OutputTag("another")
    assert OutputTag.any_made
