"""What goes wrong between the command line and a driver."""

from __future__ import annotations

from holdfast.errors import HoldfastError


class CommandError(HoldfastError):
    """A command that cannot be carried out; its message is all that the user gets to see."""


class UsageError(CommandError):
    """Arguments that are missing or contradict each other."""

    def __init__(self, message: str) -> None:
        super().__init__(f"{message}\n\nUse the help option (-h or --help) to get help on the command.")
