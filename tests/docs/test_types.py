"""Complete programs of the documentation and the examples pass mypy --strict: a user's program does, with our types."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import PROJECT, all_blocks, translated


@pytest.mark.slow
def test_programs_are_typed(tmp_path: Path) -> None:
    """All in one call. Each file is named after the page that it is from and its line there."""
    modules = tmp_path / "modules"
    modules.mkdir()
    files = sorted((PROJECT / "examples").rglob("*.py"))
    for block in all_blocks("python"):
        file = tmp_path / f"{re.sub(r'[^A-Za-z0-9]+', '_', block.name)}.py"
        file.write_text(translated(block.code))
        if block.file is not None:
            # Other files of its page import it by its name.
            (modules / block.file).write_text(translated(block.code))
        files.append(file)
    command = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", "--scripts-are-modules"]
    done = subprocess.run(
        [*command, *map(str, files)],
        cwd=PROJECT,
        env={**os.environ, "MYPYPATH": str(modules)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"no issues found in {len(files)} source files" in done.stdout


def test_the_package_says_that_it_is_typed() -> None:
    assert (PROJECT / "src" / "holdfast" / "py.typed").is_file()
