"""What a job says of itself when it was cancelled."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from holdfast.testing.in_process import InProcessEngine
from tests.job.counting import EPOCHS, WatchedSink, counting, settings


def test_a_job_is_cancelling_from_the_moment_it_is_asked(in_process: InProcessEngine, tmp_path: Path) -> None:
    """Though its running epoch takes its time."""
    begun, go_on = threading.Event(), threading.Event()

    def before(spec: Any) -> None:
        if spec.epoch == 2:
            begun.set()
            assert go_on.wait(30)

    in_process.before_epoch = before
    client = counting(settings(tmp_path), EPOCHS, WatchedSink(tmp_path / "out"), ends=False)
    assert begun.wait(30)
    ended = client.cancel()
    try:
        assert client.get_job_status().result().name == "CANCELLING"
    finally:
        go_on.set()
    ended.result(30)
    assert client.get_job_status().result().name == "CANCELED"
    # Whoever cancels what has ended does not change how it did.
    client.cancel().result(30)
    assert client.get_job_status().result().name == "CANCELED"
