"""Where the log of tasks goes: to the standard error of their executor."""

from __future__ import annotations

import logging


def log_in_worker() -> None:
    """A Python worker begins without any handler, so that only warnings would be seen. A program that sets its workers
    up to log keeps what it has.
    """
    logger = logging.getLogger("holdfast")
    if logging.getLogger().handlers or logger.handlers:
        return
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
