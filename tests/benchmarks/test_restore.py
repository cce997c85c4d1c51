"""The benchmark of restores runs, and counts what it says."""

from __future__ import annotations

import subprocess
import sys

from tests.docs.blocks import PROJECT


def test_it_reports_every_restore() -> None:
    command = [sys.executable, str(PROJECT / "benchmarks" / "restore.py"), "--keys", "3000", "--backend", "heap"]
    ran = subprocess.run(command, capture_output=True, text=True)
    # How long so few keys take says nothing: only a crash is a failure here.
    assert ran.returncode in (0, 1) and not ran.stderr, ran.stderr
    lines = ran.stdout.splitlines()
    assert lines[0].startswith("3,000 keys, ")
    assert [line[2:28].strip() for line in lines[1:]] == ["2 -> 2", "2 -> 3", "2 -> 2", "2 -> 3, 128 -> 256 groups"]
    assert lines[1].endswith("1.000 x state") and lines[4].endswith("3.000 x state")
