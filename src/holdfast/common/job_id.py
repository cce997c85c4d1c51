"""The id of a job."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class JobID:
    """The id under which a job's checkpoints are kept; ``str`` gives its text."""

    value: str

    def __str__(self) -> str:
        return self.value
