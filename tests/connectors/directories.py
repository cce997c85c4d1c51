"""What a reader of a sink's directory finds."""

from __future__ import annotations

from pathlib import Path


def committed_files(directory: Path) -> list[Path]:
    """What a reader that leaves out names with ``_`` and ``.`` finds."""
    files = [path for path in directory.rglob("*") if path.is_file()]
    return sorted(
        path for path in files if not any(part.startswith(("_", ".")) for part in path.relative_to(directory).parts)
    )


def staged_files(directory: Path) -> list[Path]:
    return sorted(path for path in (directory / "_holdfast_staging").rglob("*") if path.is_file())
