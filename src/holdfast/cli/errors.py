"""What goes wrong between the command line and a driver."""

from __future__ import annotations

from holdfast.errors import HoldfastError, JobExecutionError


def told(error: HoldfastError) -> str:
    """What a command ends with; of a job that failed, the program's own lines first."""
    trace = error.trace.rstrip() if isinstance(error, JobExecutionError) else ""
    return f"{trace}\n\n{error}" if trace else str(error)


class CommandError(HoldfastError):
    """A command that cannot be carried out; its message is all that the user gets to see."""


class UsageError(CommandError):
    """Arguments that are missing or contradict each other."""

    def __init__(self, message: str) -> None:
        super().__init__(f"{message}\n\nUse the help option (-h or --help) to get help on the command.")
