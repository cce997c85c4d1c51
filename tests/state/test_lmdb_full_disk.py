"""LMDB reports a full disk as an error of the device; the error of its store says what it is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

#: Fills the store until it cannot go on.
PROGRAM = """
import sys
from pathlib import Path
from holdfast.errors import StateError
from holdfast.state.lmdb.backend import LmdbBackend
from holdfast.state.store import Stamp

store, base = LmdbBackend().open(Path(sys.argv[1]) / "store"), Stamp(0, "start")
store.load([], base)
try:
    for epoch in range(1, 1_000):
        store.begin(base)
        store.write([(b"%d-%d" % (epoch, number), b"x" * 1_000) for number in range(100)])
        base = Stamp(epoch, "next")
        store.commit(base)
except StateError as error:
    print(error)
"""


def _in_small_file_system(directory: Path) -> subprocess.CompletedProcess[str]:
    """The program, with ``directory`` a file system of 2 MB, which is mounted for that process alone."""
    mounted = f'mount -t tmpfs -o size=2m none "{directory}" && exec "{sys.executable}" -c "$1" "{directory}"'
    command = ["unshare", "--mount", "--map-root-user", "sh", "-c", mounted, "sh", PROGRAM]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_a_full_disk_is_called_so(tmp_path: Path):
    allowed = subprocess.run(["unshare", "--mount", "--map-root-user", "true"], capture_output=True)
    if allowed.returncode:
        pytest.skip(f"no file system can be mounted here: {allowed.stderr.decode().strip()}")
    ended = _in_small_file_system(tmp_path)
    assert "Its disk is full, with " in ended.stdout, ended.stdout + ended.stderr
    assert f"The store {tmp_path}/store cannot be written" in ended.stdout
    assert "holdfast.state.local-dir" in ended.stdout
