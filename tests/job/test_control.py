"""What a cancel does to a job that is busy."""

from __future__ import annotations

import pytest

from holdfast.job.control import JobCancelled, JobControl


def test_a_cancel_interrupts_what_may_be_interrupted() -> None:
    control, interrupted = JobControl(), []
    with control.interrupted_by_cancel(lambda: interrupted.append("now")):
        control.cancel()
    assert interrupted == ["now"]
    control.cancel()
    assert interrupted == ["now"], "nothing runs any more"


def test_what_was_cancelled_before_does_not_begin() -> None:
    control = JobControl()
    control.cancel()
    with pytest.raises(JobCancelled), control.interrupted_by_cancel(lambda: None):
        pytest.fail("it began")


def test_other_work_goes_on() -> None:
    control = JobControl()
    control.cancel()
    with control.interrupted_by_cancel(None):
        control.cancel()
    assert control.cancelled
