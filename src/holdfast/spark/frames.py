"""Which DataFrames a program may give to a job."""

from __future__ import annotations

from typing import Any

from holdfast.errors import ProgramError
from holdfast.spark.connect import refuse_connect
from holdfast.spark.internals.stream_sources import sources_of
from holdfast.spark.plan_text import explained


def check_data_frame(name: str, frame: Any) -> None:
    """When it is given, so that the error shows the line of the program. ProgramError says what to change."""
    refuse_connect(frame)
    if frame.isStreaming:
        sources_of([name], [frame])
    else:
        _check_not_observed(name, frame)


def _check_not_observed(name: str, frame: Any) -> None:
    """Figures of ``observe()`` come with the plan that is run, and that of a DataFrame is hidden in the epoch's."""
    if "CollectMetrics" in explained(frame, extended=True):
        raise ProgramError(
            f"The DataFrame '{name}' has observe(), whose figures would never come: whoever asks for them would wait "
            "for ever. Leave it out, and count in a function, or see the job's metrics."
        )
