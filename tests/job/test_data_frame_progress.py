from __future__ import annotations

import pytest

from holdfast.errors import RestoreError
from holdfast.job.data_frame_progress import DataFrameProgress
from holdfast.runtime.data_frame_input import DataFrameInput
from tests.checkpoint.samples import handle, record, snapshot

FRAMES = [DataFrameInput(1, "a", "first", None, ()), DataFrameInput(2, "b", "second", None, ())]


def test_what_was_read_is_not_read_again() -> None:
    progress = DataFrameProgress(FRAMES, ())
    progress.mark_read(FRAMES[:1])
    first, second = progress.snapshots()
    assert (first.finished, second.finished) == (True, False)
    again = DataFrameProgress(FRAMES, [record("a", [first]), record("b", [second])])
    assert again.unread() == tuple(FRAMES[1:])
    assert again.read == {"a"}


def test_the_state_of_another_source_is_not_taken_for_having_been_read() -> None:
    of_a_sequence = snapshot(operator_id="a", operator_state=handle(inline=b"positions"))
    with pytest.raises(RestoreError, match=r"under the id of the DataFrame 'first' \(a\).* another uid"):
        DataFrameProgress(FRAMES, [record("a", [of_a_sequence])])
