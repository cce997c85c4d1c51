"""Another project's package as an installer leaves it: its modules are found, and its metadata with entry points."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

#: What adds to Holdfast from outside.
ACME = Path(__file__).parents[1] / "third_party" / "acme"


@contextmanager
def installed(project: Path, folder: Path, **more: Mapping[str, str]) -> Iterator[None]:
    """While the block runs, a project with a ``src`` is installed. ``folder`` is for its metadata; ``more`` are
    entry points, by group with ``.`` written ``_``, beside those of its ``pyproject.toml``.
    """
    describe(project, folder, **more)
    packages, before = [path.name for path in (project / "src").iterdir()], set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(project / "src")
        patch.syspath_prepend(folder)
        yield
    for name in [name for name in sys.modules if name.partition(".")[0] in packages and name not in before]:
        del sys.modules[name]


def describe(project: Path, folder: Path, **more: Mapping[str, str]) -> None:
    """Write the metadata of a project as ``installed`` does."""
    described = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    groups = {group: dict(entries) for group, entries in described["entry-points"].items()}
    for group in groups:
        groups[group] |= more.get(group.replace(".", "_"), {})
    info = folder / f"{described['name'].replace('-', '_')}-{described['version']}.dist-info"
    info.mkdir(parents=True)
    head = f"Metadata-Version: 2.1\nName: {described['name']}\nVersion: {described['version']}\n"
    (info / "METADATA").write_text(head)
    lines = [line for group, entries in groups.items() for line in (f"[{group}]", *map(" = ".join, entries.items()))]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
