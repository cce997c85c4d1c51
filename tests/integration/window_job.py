"""Sessions with late rows, and short windows, on Spark: sums to one sink, late rows to another."""

from __future__ import annotations

from pathlib import Path

from tests.integration.programs import environment
from tests.job.window_jobs import EPOCHS, add_short_windows, add_windows


def run(directory: Path) -> int:
    """How often the job was restarted."""
    env = environment(
        **{
            "execution.checkpointing.interval": "10 ms",
            "execution.checkpointing.dir": str(directory / "chk"),
            "holdfast.epoch.idle-wait": "1 ms",
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": "5",
            "restart-strategy.fixed-delay.delay": "10 ms",
        }
    )
    add_windows(env, directory, "session", "aggregate", epochs=EPOCHS[:5])
    add_short_windows(env, directory, "process")
    return env.execute("windows").get_history().restarts
