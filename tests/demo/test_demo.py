"""The demo as a user runs it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

_SOURCES = Path(__file__).resolve().parents[2] / "src"


@pytest.mark.slow
def test_the_demo_survives_a_killed_worker(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "holdfast.demo", "--seconds", "5", "--rate", "8000", "--sensors", "100"],
        env={**os.environ, "PYTHONPATH": str(_SOURCES), "SPARK_LOCAL_IP": "127.0.0.1", "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Every result exactly once." in done.stdout
    figures = dict(re.findall(r"^(\w[\w ]+?) +([\d,]+)$", done.stdout, re.MULTILINE))
    assert figures["lost"] == figures["repeated"] == figures["wrong"] == "0"
    assert figures["rows expected"] == figures["rows seen"] != "0"
    assert int(figures["workers killed"]) >= 1 and int(figures["restarts"]) >= 1
    assert re.search(r"attempt 1 failed: .*; back to checkpoint \d+", done.stdout)
    assert re.search(r"epoch \d+ \(attempt 2\)", done.stdout)
    assert done.stderr == ""
    assert not list(tmp_path.glob("holdfast-demo-*")), "a run that went well leaves nothing behind"
