"""What says that a test cannot run here."""

from __future__ import annotations


class Unavailable(Exception):
    """What a test needs from outside cannot be had here. The text says what, and why."""
